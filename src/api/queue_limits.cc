#include "api/queue_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>

#include "api/names.h"
#include "base/int128.h"
#include "base/printable.h"
#include "model/quantity.h"

namespace berth::api {
namespace {

constexpr std::string_view kHours = "GPU-hours", kDollars = "dollars", kGpus = "GPUs", kDollarsAnHour = "dollars/hour";
constexpr std::string_view kHold = "hold", kDrain = "drain";

std::optional<Period> window_of(std::string_view text) {
  for (const Period window : {Period::kDay, Period::kWeek, Period::kMonth})
    if (text == to_string(window)) return window;
  return std::nullopt;
}

// The parts between these characters, without spaces around them.
std::vector<std::string> split(const std::string& text, std::string_view between) {
  std::vector<std::string> out(1);
  for (const char c : text)
    if (between.find(c) != std::string_view::npos) out.emplace_back();
    else if (c != ' ' || !out.back().empty()) out.back() += c;
  for (std::string& part : out) part.erase(part.find_last_not_of(' ') + 1);
  return out;
}

// "nvidia.com/gpu=8, cpu=64"; an error says which part is none.
Result<model::ResourceList> read_limits(const std::string& text) {
  model::ResourceList out;
  for (const std::string& part : split(text, ",")) {
    const std::vector<std::string> named = split(part, "=");
    const std::string& name = named.front();
    const Result<int64_t> amount = model::parse_quota(name, named.back());
    const Result<int64_t> thousandths = model::parse_quantity(named.back(), 3);
    const bool in_part =
        model::is_extended_resource(name) && model::quota_units(name) == 1 && thousandths && *thousandths % 1000 != 0;
    if (named.size() != 2 || !check_qualified_name(name).empty() || !amount || in_part || out.contains(name))
      return fail(
          ErrorCode::kInvalidInput,
          fmt::format("'{}' is no limit; write each resource once, as nvidia.com/gpu=8, cpu=64", printable(part, 80)));
    out.set(name, *amount);
  }
  return out;
}

std::string unreadable(const ObjectMeta& metadata, std::initializer_list<std::string_view> keys) {
  std::string out;
  for (const std::string_view key : keys) {
    const std::string* value = metadata.annotation(key);
    const std::string problem = value == nullptr ? "" : queue_limit_problem(key, *value);
    if (!problem.empty()) out += fmt::format("{}annotation {}: {}", out.empty() ? "" : "; ", key, problem);
  }
  return out;
}

// The annotation's value where it is there and has no problem; else null.
const std::string* sound(const ObjectMeta& metadata, std::string_view key) {
  const std::string* value = metadata.annotation(key);
  return value != nullptr && queue_limit_problem(key, *value).empty() ? value : nullptr;
}

}  // namespace

std::string queue_limit_problem(std::string_view key, const std::string& value) {
  const std::string shown = printable(value, 80);
  if (key == kUserLimitsAnnotation) {
    const auto limits = read_limits(value);
    return limits ? "" : limits.error().message;
  }
  if ((key == kBudgetGpuHoursAnnotation || key == kBudgetDollarsAnnotation) && !model::parse_micros(value))
    return fmt::format("'{}' is no amount of {}; write a number with up to six decimals, for example 2500", shown,
                       key == kBudgetDollarsAnnotation ? kDollars : kHours);
  if (key == kBudgetWindowAnnotation && !window_of(value))
    return fmt::format("'{}' is no window; write day, week or month", shown);
  if (key == kBudgetWhenSpentAnnotation && value != kHold && value != kDrain)
    return fmt::format("'{}' is neither {} nor {}", shown, kHold, kDrain);
  return "";
}

std::string unreadable_limits(const ClusterQueue& queue) {
  return unreadable(queue.metadata, {kUserLimitsAnnotation, kBudgetGpuHoursAnnotation, kBudgetDollarsAnnotation,
                                     kBudgetWindowAnnotation, kBudgetWhenSpentAnnotation});
}

std::string unreadable_limits(const LocalQueue& queue) {
  return unreadable(queue.metadata, {kBudgetGpuHoursAnnotation, kBudgetDollarsAnnotation, kBudgetWindowAnnotation,
                                     kBudgetWhenSpentAnnotation});
}

std::string idle_user_limits(const model::ClusterQueue& queue) {
  std::vector<std::string> covered, idle;
  for (const model::ResourceGroup& group : queue.groups)
    covered.insert(covered.end(), group.resources.begin(), group.resources.end());
  for (const auto& [resource, limit] : queue.user_limits)
    if (std::find(covered.begin(), covered.end(), resource) == covered.end()) idle.push_back(resource);
  if (idle.empty()) return "";
  return fmt::format("annotation {} limits {}, which the queue does not cover, so that it has no effect; it covers {}",
                     kUserLimitsAnnotation, fmt::join(idle, ", "), fmt::join(covered, ", "));
}

std::string user_of(const ObjectMeta& metadata) {
  const std::string* user = metadata.annotation(kUserAnnotation);
  return user == nullptr ? "" : *user;
}

model::ResourceList user_limits_of(const ObjectMeta& metadata) {
  const std::string* limits = sound(metadata, kUserLimitsAnnotation);
  return limits == nullptr ? model::ResourceList{} : *read_limits(*limits);
}

model::Budget budget_of(const ObjectMeta& metadata) {
  model::Budget out;
  if (const std::string* hours = sound(metadata, kBudgetGpuHoursAnnotation)) out.gpu_time = model::parse_micros(*hours);
  if (const std::string* cost = sound(metadata, kBudgetDollarsAnnotation)) out.cost = model::parse_micros(*cost);
  if (const std::string* window = sound(metadata, kBudgetWindowAnnotation)) out.window = *window_of(*window);
  if (const std::string* then = sound(metadata, kBudgetWhenSpentAnnotation)) out.drains = *then == kDrain;
  return out;
}

std::string budget_message(const model::Budget& budget, const model::Spent& spent, const SpendingRate& rate) {
  const auto part = [](const std::optional<int64_t>& limit, int64_t amount, std::string_view unit) {
    return limit ? fmt::format("{} of {} {}", model::format_micros(amount), model::format_micros(*limit), unit) : "";
  };
  const std::string hours = part(budget.gpu_time, spent.gpu_time, kHours);
  const std::string dollars = part(budget.cost, spent.cost, kDollars);
  std::string out =
      fmt::format("{}{}{} of the {} since {}, counted until {}", hours, hours.empty() || dollars.empty() ? "" : " and ",
                  dollars, to_string(budget.window), format_rfc3339(spent.since), format_rfc3339_micro(spent.until));
  if (rate.gpus > 0) out += fmt::format(", since then {} {}", model::format_micros(rate.gpus), kGpus);
  if (rate.gpus > 0 && rate.cost > 0) out += fmt::format(" at {} {}", model::format_micros(rate.cost), kDollarsAnHour);
  return out;
}

std::optional<model::Spent> spent_of(const std::vector<Condition>& conditions) {
  model::Spent out;
  bool since = false, until = false;
  for (const Condition& condition : conditions) {
    if (condition.type != kBudgetCondition) continue;
    std::vector<std::string> words = split(condition.message, " ,");
    std::erase(words, "");
    for (size_t i = 1; i < words.size(); ++i) {
      const auto time = parse_rfc3339(words[i]);
      if (words[i - 1] == "since" && time) out.since = *time;
      if (words[i - 1] == "until" && time) out.until = *time;
      since |= words[i - 1] == "since" && time;
      until |= words[i - 1] == "until" && time;
      const auto amount = i >= 3 ? model::parse_micros(words[i - 3]) : std::nullopt;
      if (words[i] == kHours) out.gpu_time = amount.value_or(0);
      if (words[i] == kDollars) out.cost = amount.value_or(0);
    }
  }
  return since && until ? std::optional(out) : std::nullopt;
}

SpendingRate spending_rate_of(const std::vector<Condition>& conditions) {
  SpendingRate out;
  for (const Condition& condition : conditions) {
    if (condition.type != kBudgetCondition) continue;
    const std::vector<std::string> words = split(condition.message, " ,");
    for (size_t i = 1; i < words.size(); ++i) {
      const std::optional<int64_t> amount = model::parse_micros(words[i - 1]);
      if (words[i] == kGpus) out.gpus = amount.value_or(0);
      if (words[i] == kDollarsAnHour) out.cost = amount.value_or(0);
    }
  }
  return out;
}

model::Spent spent_by(model::Spent written, const SpendingRate& rate, Period window, Time now) {
  const Time begin = period_begin(window, now);
  const bool earlier_window = written.since < begin;
  if (rate.gpus <= 0 || now <= written.until || (!earlier_window && written.since != begin)) return written;
  const Int128 passed = (now - std::max(written.until, begin)).nanos, hour = Duration::seconds(3600).nanos;
  const auto more = [&](int64_t an_hour) {
    return static_cast<int64_t>(std::min<Int128>(model::kBudgetMax, passed * an_hour / hour));
  };
  return {begin, now, (earlier_window ? 0 : written.gpu_time) + more(rate.gpus),
          (earlier_window ? 0 : written.cost) + more(rate.cost)};
}

}  // namespace berth::api
