// LimitRanges: those of all namespaces, and what they do together to pods and claims (limits/limit_range.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/limits.h"
#include "api/pod.h"
#include "api/volumes.h"

namespace berth::limits {

// Why the API server does not store an object.
struct Refusal {
  bool invalid = false;  // 422 Invalid; else 403 Forbidden
  std::string text;      // "exceeded quota: gpu-quota, requested: …, used: …, limited: …"

  // As the server says it, of an object of `resource` ("pods") and `kind` ("Pod").
  std::string message(std::string_view resource, std::string_view kind, std::string_view name) const;
};

class LimitRanges {
 public:
  void put(api::LimitRange range);
  void remove(const std::string& namespace_name, const std::string& name);

  // Null: it is not there.
  const api::LimitRange* find(const std::string& namespace_name, const std::string& name) const;
  bool any(const std::string& namespace_name) const { return all_.contains(namespace_name); }

  // Gives the pod's containers all defaults of its namespace.
  void complete(const std::string& namespace_name, api::PodSpec& spec) const;
  // Of a spec that is complete.
  std::optional<Refusal> refusal(const std::string& namespace_name, const api::PodSpec& spec) const;
  std::optional<Refusal> refusal(const std::string& namespace_name, const api::ClaimSpec& spec) const;

 private:
  std::map<std::string, std::map<std::string, api::LimitRange>> all_;  // by namespace and name
};

}  // namespace berth::limits
