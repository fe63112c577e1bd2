#include "limits/runtime_classes.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::limits {

const api::RuntimeClass* RuntimeClasses::find(const std::string& name) const {
  const auto at = classes_.find(name);
  return at == classes_.end() ? nullptr : &at->second;
}

std::vector<std::pair<std::string_view, std::string>> RuntimeClasses::apply(api::PodSpec& spec) const {
  const api::RuntimeClass& of = classes_.at(spec.runtime_class_name);
  std::vector<std::pair<std::string_view, std::string>> wrong;
  if (spec.overhead.empty()) spec.overhead = of.overhead;
  else if (!(spec.overhead == of.overhead))
    wrong.emplace_back("overhead", "Pod's Overhead doesn't match RuntimeClass's defined Overhead; remove it here");
  for (const auto& [key, value] : of.node_selector) {
    const std::string* own = spec.node_selector.find(key);
    if (own == nullptr) spec.node_selector.set(key, value);
    else if (*own != value)
      wrong.emplace_back("nodeSelector", fmt::format("conflict: runtimeClass.scheduling.nodeSelector[{}] = {}; "
                                                     "pod.spec.nodeSelector[{}] = {}; the pod can ask for no other",
                                                     key, value, key, *own));
  }
  for (const model::Toleration& toleration : of.tolerations)
    if (std::find(spec.tolerations.begin(), spec.tolerations.end(), toleration) == spec.tolerations.end())
      spec.tolerations.push_back(toleration);
  return wrong;
}

}  // namespace berth::limits
