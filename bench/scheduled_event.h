// The Event that says that a pod was scheduled, as the benches write it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/time.h"

namespace berth::bench {

// events.k8s.io/v1, of a pod in the namespace default; `name` is the event's own.
inline std::string event_json(const std::string& pod, const std::string& uid, const std::string& name,
                              const std::string& note, Time at) {
  return nlohmann::json{
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata", {{"name", name}, {"namespace", "default"}}},
      {"eventTime", format_rfc3339_micro(at)},
      {"type", "Normal"},
      {"reason", "Scheduled"},
      {"action", "Binding"},
      {"reportingController", "bench"},
      {"reportingInstance", "bench-1"},
      {"regarding", {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod}, {"namespace", "default"}, {"uid", uid}}},
      {"note", note}}
      .dump();
}

}  // namespace berth::bench
