#include "scenario/priority_classes.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::scenario {

PriorityClasses::PriorityClasses()
    : classes_{{"system-node-critical", {.value = 2'000'001'000}},
               {"system-cluster-critical", {.value = 2'000'000'000}}} {}

void PriorityClasses::add(const api::PriorityClass& priority_class) {
  const Priority priority{priority_class.value, priority_class.preemption_policy, priority_class.metadata.name};
  classes_.insert_or_assign(priority_class.metadata.name, priority);
  if (!priority_class.global_default) return;
  if (!global_default_ || priority.value < global_default_->value) global_default_ = priority;
}

Result<PriorityClasses::Priority> PriorityClasses::resolve(const api::PodSpec& spec, bool stored) const {
  if (stored && spec.priority) return Priority{*spec.priority, spec.preemption_policy};
  Priority found = global_default_.value_or(Priority{});
  if (!spec.priority_class_name.empty()) {
    const auto at = classes_.find(spec.priority_class_name);
    if (at == classes_.end())
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("no PriorityClass with name {} was found; add it to the files, or correct the name",
                              spec.priority_class_name));
    found = at->second;
  }
  if (spec.priority && *spec.priority != found.value)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("the integer value of priority ({}) must not be provided in pod spec; priority admission "
                            "controller computed {} from the given PriorityClass name; name a PriorityClass instead",
                            *spec.priority, found.value));
  return found;
}

// A spec that says PreemptLowerPriority is not told from one that says nothing, which takes the policy of its class.
std::string PriorityClasses::policy_problem(const api::PodSpec& spec, const Priority& priority) {
  if (spec.preemption_policy != "Never" || priority.preemption_policy == "Never") return "";
  return fmt::format(
      "Forbidden: the string value of PreemptionPolicy ({}) must not be provided in pod spec; priority admission "
      "controller computed {} from the given PriorityClass name; name a PriorityClass that says so instead",
      spec.preemption_policy, priority.preemption_policy);
}

}  // namespace berth::scenario
