// PodNames: the names that pods of the input cannot do without: a Pod's own, and those that a StatefulSet gives.
//
// Other controllers end their pods' names in letters drawn at random. Here these are counted, so that each run has the
// same; where such a name is one of these, or a pod of another workload has it, the simulator chooses the next one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "api/decode.h"

namespace berth::scenario {

class PodNames {
 public:
  void reserve(const api::Object& object);
  bool reserved(const std::string& namespace_name, std::string_view pod) const {
    return pods_.contains(namespace_name + "/" + std::string(pod)) || !statefulset_of(namespace_name, pod).empty();
  }
  // The StatefulSet that gives a pod this name; empty for none.
  std::string statefulset_of(const std::string& namespace_name, std::string_view pod) const;

 private:
  struct Ordinals {
    int64_t start, count;
  };
  std::set<std::string> pods_;                    // "namespace/name"
  std::map<std::string, Ordinals> statefulsets_;  // the same
};

// "default/train" for "train"; a name with a namespace as it is.
std::string with_namespace(const std::string& name);

}  // namespace berth::scenario
