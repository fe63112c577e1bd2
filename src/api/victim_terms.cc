#include "api/victim_terms.h"

#include <fmt/format.h>

#include "api/runtime_estimate.h"
#include "base/printable.h"

namespace berth::api {
namespace {

constexpr std::string_view kLeastLostWork = "least-lost-work", kKueuesOrder = "kueue";

bool is_duration(std::string_view key) {
  return key == kCheckpointIntervalAnnotation || key == kMinimumRuntimeAnnotation || key == kLostWorkMaxAnnotation;
}

// The annotation's value where it is there and has no problem; else null.
const std::string* sound(const ObjectMeta& metadata, std::string_view key) {
  const std::string* value = metadata.annotation(key);
  return value != nullptr && victim_annotation_problem(key, *value).empty() ? value : nullptr;
}

}  // namespace

std::string victim_annotation_problem(std::string_view key, const std::string& value) {
  if (key == kMinimumRuntimeAnnotation && parse_duration(value) == Duration{}) return "";  // as without it
  if (is_duration(key)) return runtime_estimate_problem(value);
  if (key == kLastCheckpointAnnotation && !parse_rfc3339(value))
    return fmt::format("'{}' is no time; write it as 2026-01-02T15:04:05Z", printable(value, 80));
  if (key == kVictimOrderAnnotation && value != kLeastLostWork && value != kKueuesOrder)
    return fmt::format("'{}' is no order; write {} or {}", printable(value, 80), kLeastLostWork, kKueuesOrder);
  return "";
}

model::Checkpoints checkpoints_of(const ObjectMeta& metadata) {
  model::Checkpoints out;
  if (const std::string* interval = sound(metadata, kCheckpointIntervalAnnotation))
    out.interval = *parse_duration(*interval);
  if (const std::string* last = sound(metadata, kLastCheckpointAnnotation)) out.last = *parse_rfc3339(*last);
  return out;
}

model::VictimTerms victim_terms_of(const ObjectMeta& metadata) {
  model::VictimTerms out;
  if (const std::string* least = sound(metadata, kMinimumRuntimeAnnotation)) out.min_runtime = *parse_duration(*least);
  if (const std::string* most = sound(metadata, kLostWorkMaxAnnotation)) out.loss_max = *parse_duration(*most);
  if (const std::string* order = sound(metadata, kVictimOrderAnnotation))
    out.least_loss_first = *order == kLeastLostWork;
  return out;
}

}  // namespace berth::api
