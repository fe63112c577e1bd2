#include "scenario/pod_names.h"

#include <charconv>

#include "workloads/template.h"

namespace berth::scenario {

std::string with_namespace(const std::string& name) {
  return name.find('/') == std::string::npos ? "default/" + name : name;
}

void PodNames::reserve(const api::Object& object) {
  const api::ObjectMeta& metadata = api::metadata_of(object);
  const std::string name = metadata.namespace_name + "/" + std::string(workloads::base_name(metadata));
  if (const auto* statefulset = std::get_if<api::StatefulSet>(&object))
    statefulsets_.insert_or_assign(name, Ordinals{statefulset->ordinals_start, statefulset->replicas});
  else if (std::holds_alternative<api::Pod>(object) && !metadata.name.empty()) pods_.insert(name);
}

std::string PodNames::statefulset_of(const std::string& namespace_name, std::string_view pod) const {
  const size_t dash = pod.rfind('-');
  if (dash == std::string_view::npos) return "";
  const std::string_view digits = pod.substr(dash + 1);
  int64_t ordinal = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (error != std::errc{} || std::to_string(ordinal) != digits) return "";
  const auto found = statefulsets_.find(namespace_name + "/" + std::string(pod.substr(0, dash)));
  if (found == statefulsets_.end()) return "";
  const auto [start, count] = found->second;
  return ordinal >= start && ordinal < start + count ? std::string(pod.substr(0, dash)) : "";
}

}  // namespace berth::scenario
