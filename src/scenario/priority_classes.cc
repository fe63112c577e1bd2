#include "scenario/priority_classes.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::scenario {

PriorityClasses::PriorityClasses()
    : values_{{"system-node-critical", 2'000'001'000}, {"system-cluster-critical", 2'000'000'000}} {}

void PriorityClasses::add(const api::PriorityClass& priority_class) {
  values_.insert_or_assign(priority_class.metadata.name, priority_class.value);
  if (!priority_class.global_default) return;
  global_default_ = std::min(global_default_.value_or(priority_class.value), priority_class.value);
}

Result<int32_t> PriorityClasses::resolve(const api::PodSpec& spec) const {
  int32_t value = global_default_.value_or(0);
  if (!spec.priority_class_name.empty()) {
    const auto at = values_.find(spec.priority_class_name);
    if (at == values_.end() && spec.priority) return *spec.priority;
    if (at == values_.end())
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("no PriorityClass with name {} was found; add it to the files, or correct the name",
                              spec.priority_class_name));
    value = at->second;
  }
  if (spec.priority && *spec.priority != value)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("the integer value of priority ({}) must not be provided in pod spec; priority admission "
                            "controller computed {} from the given PriorityClass name; name a PriorityClass instead",
                            *spec.priority, value));
  return value;
}

}  // namespace berth::scenario
