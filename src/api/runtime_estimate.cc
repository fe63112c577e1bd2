#include "api/runtime_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/kueue_names.h"
#include "base/printable.h"

namespace berth::api {

std::string runtime_estimate_problem(const std::string& value) {
  const auto duration = parse_duration(value);
  if (!duration) return duration.error().message;
  if (*duration <= Duration{}) return fmt::format("'{}' is not above 0", printable(value, 80));
  if (*duration > kRuntimeMax) return fmt::format("'{}' is more than ten years", printable(value, 80));
  return "";
}

std::optional<int32_t> max_execution_s(const ObjectMeta& metadata) {
  const std::string* text = metadata.labels.find(kMaxExecutionLabel);
  if (text == nullptr) return std::nullopt;
  int32_t out = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
  if (error != std::errc{} || end != text->data() + text->size() || out <= 0) return std::nullopt;
  return out;
}

std::optional<Duration> declared_runtime(const ObjectMeta& metadata, const std::optional<int64_t>& active_deadline_s) {
  if (const std::string* told = metadata.annotation(kRuntimeEstimateAnnotation);
      told != nullptr && runtime_estimate_problem(*told).empty())
    return *parse_duration(*told);
  if (const auto limit = max_execution_s(metadata)) return Duration::seconds(*limit);
  if (!active_deadline_s || *active_deadline_s <= 0) return std::nullopt;
  return Duration::seconds(std::min(*active_deadline_s, kRuntimeMax.nanos / Duration::seconds(1).nanos));
}

}  // namespace berth::api
