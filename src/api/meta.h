// ObjectMeta: what every Kubernetes object says of itself.
// Source: k8s.io/apimachinery/pkg/apis/meta/v1. Fields that Berth has no use for are not kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/labels.h"

namespace berth::api {

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

struct ObjectMeta {
  std::string name;
  std::string generate_name;   // in files a name may be left to the server
  std::string namespace_name;  // empty where the manifest names none and for cluster-scoped kinds
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  std::optional<Time> created;
  std::optional<Time> deleted;              // deletionTimestamp: the object is terminating
  std::optional<int64_t> deletion_grace_s;  // that it was given; set with `deleted`
  model::Labels labels;
  model::Labels annotations;
  std::vector<OwnerReference> owners;

  // The owner that manages this object; null without one.
  const OwnerReference* controller() const;
  // The annotation's value; null without it.
  const std::string* annotation(std::string_view key) const { return annotations.find(key); }
  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

// A status condition, as pods, nodes and jobs have them.
struct Condition {
  std::string type;
  std::string status;  // "True", "False" or "Unknown"
  std::string reason;
  std::string message;
  friend bool operator==(const Condition&, const Condition&) = default;
};

}  // namespace berth::api
