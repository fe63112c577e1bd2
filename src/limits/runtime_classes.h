// RuntimeClasses: what a pod's runtimeClassName adds to it, as the API server's RuntimeClass admission does: overhead,
// a node selector and tolerations. Source: k8s.io/kubernetes/plugin/pkg/admission/runtimeclass (1.35).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cluster.h"
#include "api/pod.h"

namespace berth::limits {

class RuntimeClasses {
 public:
  void add(const api::RuntimeClass& runtime_class) { classes_[runtime_class.metadata.name] = runtime_class; }
  void remove(const std::string& name) { classes_.erase(name); }
  bool knows(const std::string& name) const { return classes_.contains(name); }
  // Null: it is not there.
  const api::RuntimeClass* find(const std::string& name) const;
  // Gives the spec what its class adds. Returns what contradicts the class, each with the field of the spec; the class
  // must be known.
  std::vector<std::pair<std::string_view, std::string>> apply(api::PodSpec& spec) const;

 private:
  std::map<std::string, api::RuntimeClass> classes_;
};

}  // namespace berth::limits
