// Just enough protobuf for the writes that wire_bench compares: a Binding and an Event as the API server takes them in
// application/vnd.kubernetes.protobuf, that is in a runtime.Unknown behind the magic "k8s\0".
//
// Field numbers are those of generated.proto in k8s.io/api core/v1 and events/v1, and of k8s.io/apimachinery.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/protobuf_bytes.h"

namespace berth::bench {

inline constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";

using Message = api::Bytes;

inline Message object_meta(std::string_view name_space, std::string_view name, std::string_view uid) {
  return Message().text(1, name).text(3, name_space).text(5, uid);
}

inline std::string enveloped(std::string_view api_version, std::string_view kind, const Message& object) {
  const Message type = Message().text(1, api_version).text(2, kind);
  return std::string("k8s\0", 4) + Message().message(1, type).message(2, object).done();
}

inline std::string binding_protobuf(std::string_view name_space, std::string_view pod, std::string_view uid,
                                    std::string_view node) {
  const Message target = Message().text(1, "Node").text(3, node);
  return enveloped("v1", "Binding", Message().message(1, object_meta(name_space, pod, uid)).message(2, target));
}

// A Scheduled event; `micros` since 1970.
inline std::string event_protobuf(std::string_view pod, std::string_view uid, std::string_view name,
                                  std::string_view note, int64_t micros) {
  const Message at = Message().number(1, micros / 1'000'000).number(2, micros % 1'000'000 * 1000);
  const Message regarding = Message().text(1, "Pod").text(2, "default").text(3, pod).text(4, uid).text(5, "v1");
  return enveloped("events.k8s.io/v1", "Event",
                   Message()
                       .message(1, object_meta("default", name, ""))
                       .message(2, at)
                       .text(4, "bench")
                       .text(5, "bench-1")
                       .text(6, "Binding")
                       .text(7, "Scheduled")
                       .message(8, regarding)
                       .text(10, note)
                       .text(11, "Normal"));
}

}  // namespace berth::bench
