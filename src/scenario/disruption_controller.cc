#include "scenario/disruption_controller.h"

#include <algorithm>
#include <charconv>

#include "bridge/to_model.h"

namespace berth::scenario {
namespace {

// "2", or "50%" of `whole`, rounded up.
int64_t scaled(const std::string& text, int64_t whole) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return text.ends_with('%') ? (whole * number + 99) / 100 : number;
}

}  // namespace

void DisruptionController::put(const api::PodDisruptionBudget& budget) {
  budgets_[budget.metadata.namespace_name + "/" + budget.metadata.name] = {budget};
}

void DisruptionController::begin() {
  for (auto& [key, record] : budgets_) record.expected = record.healthy = 0;
}

void DisruptionController::count(const std::string& namespace_name, const model::Labels& labels, bool healthy) {
  for (auto& [key, record] : budgets_) {
    if (record.object.metadata.namespace_name != namespace_name || !record.object.selector.matches(labels)) continue;
    ++record.expected;
    record.healthy += healthy ? 1 : 0;
  }
}

void DisruptionController::end() {
  for (auto& [key, record] : budgets_) {
    const api::PodDisruptionBudget& object = record.object;
    if (record.healthy_at_first < 0) record.healthy_at_first = record.healthy;
    int64_t allowed = 0;
    if (object.has_status) allowed = object.disruptions_allowed - (record.healthy_at_first - record.healthy);
    else if (!object.max_unavailable.empty())
      allowed = record.healthy - (record.expected - scaled(object.max_unavailable, record.expected));
    else allowed = record.healthy - scaled(object.min_available.empty() ? "1" : object.min_available, record.expected);
    const auto told = static_cast<int32_t>(std::clamp<int64_t>(allowed, 0, INT32_MAX));
    if (record.told == told) continue;
    record.told = told;
    engine::BudgetUpserted event{bridge::to_model(object)};
    event.budget.allowed = told;
    outbox_.emplace_back(std::move(event));
  }
}

}  // namespace berth::scenario
