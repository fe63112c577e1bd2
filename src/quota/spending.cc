#include "quota/spending.h"

#include <fmt/format.h>

#include <algorithm>

#include "quota/options.h"

namespace berth::quota {
namespace {

// What a millionth of an hour or a dollar is of Sum's units.
constexpr Int128 kMicroGpuHour = Int128{7} * Duration::seconds(3600).nanos, kMicroDollar = kMicroGpuHour;

// When the sum is the limit, at this rate; none: never.
std::optional<Duration> until_reached(Int128 sum, Int128 limit, int64_t rate) {
  if (sum >= limit) return Duration{};
  if (rate <= 0) return std::nullopt;
  const Int128 nanos = (limit - sum + rate - 1) / rate;
  if (nanos > INT64_MAX / 2) return std::nullopt;
  return Duration{static_cast<int64_t>(nanos)};
}

int64_t cut(Int128 sum, Int128 unit) {
  return static_cast<int64_t>(std::min<Int128>(sum / unit, model::kBudgetMax * Int128{1000}));
}

}  // namespace

void Spending::begin_window(Account& account, Time now) const {
  account.since = unwall(period_begin(account.budget.window, wall(now)));
  account.until = unwall(period_end(account.budget.window, wall(now)));
}

void Spending::bring_up(Account& account, Time now) const {
  if (now >= account.until) {
    begin_window(account, now);
    account.sum = {};
    account.at = account.since;
  }
  const Int128 passed = (now - account.at).nanos;
  account.sum.gpu_time += passed * account.rate.sevenths;
  account.sum.cost += passed * account.rate.price;
  account.at = now;
}

bool Spending::exceeded(const Account& account) {
  const auto reached = [](const std::optional<int64_t>& limit, Int128 sum, Int128 unit) {
    return limit && sum >= *limit * unit;
  };
  return reached(account.budget.gpu_time, account.sum.gpu_time, kMicroGpuHour) ||
         reached(account.budget.cost, account.sum.cost, kMicroDollar);
}

void Spending::set(const Queue& queue, const model::Budget& budget, const std::optional<model::Spent>& before,
                   Time now) {
  if (!budget.exists()) return remove(queue);
  const auto [at, is_new] = accounts_.try_emplace(queue);
  Account& account = at->second;
  if (!is_new) {
    bring_up(account, now);
    const bool other_window = account.budget.window != budget.window;
    account.budget = budget;
    if (!other_window) return;
  }
  account.budget = budget;
  account.first = account.at = now;
  account.sum = {};
  begin_window(account, now);
  if (!is_new || !before) return;
  account.first = std::min(now, unwall(before->until));
  if (unwall(before->since) != account.since) return;  // an earlier window
  account.sum = {before->gpu_time * kMicroGpuHour, before->cost * kMicroDollar};
}

void Spending::begin(const Queue& queue, Rate rate, Time since, Time now) {
  const auto found = accounts_.find(queue);
  if (found == accounts_.end()) return;
  Account& account = found->second;
  bring_up(account, now);
  const Int128 before = std::max<int64_t>(0, (now - std::max({since, account.first, account.since})).nanos);
  account.sum.gpu_time += before * rate.sevenths;
  account.sum.cost += before * rate.price;
  account.rate.sevenths += rate.sevenths;
  account.rate.price += rate.price;
}

void Spending::end(const Queue& queue, Rate rate, Time now) {
  const auto found = accounts_.find(queue);
  if (found == accounts_.end()) return;
  bring_up(found->second, now);
  found->second.rate.sevenths -= rate.sevenths;
  found->second.rate.price -= rate.price;
}

void Spending::stop_all(Time now) {
  for (auto& [queue, account] : accounts_) {
    bring_up(account, now);
    account.rate = {};
  }
}

std::vector<Spending::Queue> Spending::advance(Time now) {
  std::vector<Queue> changed;
  for (auto& [queue, account] : accounts_) {
    bring_up(account, now);
    const bool spent = exceeded(account);
    if (spent != account.spent) changed.push_back(queue);
    account.spent = spent;
  }
  return changed;
}

std::optional<Time> Spending::due(const Account& account) {
  if (account.spent) return account.until;
  std::optional<Duration> soonest;
  const auto weigh = [&](const std::optional<int64_t>& limit, Int128 sum, Int128 unit, int64_t rate) {
    const auto reached = limit ? until_reached(sum, *limit * unit, rate) : std::nullopt;
    if (reached) soonest = std::min(soonest.value_or(*reached), *reached);
  };
  weigh(account.budget.gpu_time, account.sum.gpu_time, kMicroGpuHour, account.rate.sevenths);
  weigh(account.budget.cost, account.sum.cost, kMicroDollar, account.rate.price);
  if (account.rate.sevenths == 0 && !soonest) return std::nullopt;
  return soonest && account.at + *soonest < account.until ? account.at + *soonest : account.until;
}

std::optional<Time> Spending::next_due() const {
  std::optional<Time> next;
  for (const auto& [queue, account] : accounts_)
    if (const std::optional<Time> one = due(account)) next = std::min(next.value_or(*one), *one);
  return next;
}

bool Spending::is_spent(const Queue& queue) const {
  const auto found = accounts_.find(queue);
  return found != accounts_.end() && found->second.spent;
}

bool Spending::is_spent_by(const Queue& queue, Time then, const std::vector<std::pair<Time, Rate>>& ends) const {
  const auto found = accounts_.find(queue);
  if (found == accounts_.end() || then >= found->second.until) return false;
  Account account = found->second;
  bring_up(account, std::max(then, account.at));
  for (const auto& [end, rate] : ends) {
    const Int128 left = std::max<int64_t>(0, (account.at - std::max(end, found->second.at)).nanos);
    account.sum.gpu_time -= left * rate.sevenths;
    account.sum.cost -= left * rate.price;
  }
  return exceeded(account);
}

bool Spending::drains(const Queue& queue) const { return is_spent(queue) && accounts_.at(queue).budget.drains; }

std::optional<model::Spent> Spending::spent(const Queue& queue, Time now) const {
  const auto found = accounts_.find(queue);
  if (found == accounts_.end()) return std::nullopt;
  Account account = found->second;
  bring_up(account, std::max(now, account.at));
  return model::Spent{wall(account.since), wall(account.at), cut(account.sum.gpu_time, kMicroGpuHour),
                      cut(account.sum.cost, kMicroDollar)};
}

std::string Spending::message(const Queue& queue) const {
  const Account& account = accounts_.at(queue);
  const auto reached = [](const std::optional<int64_t>& limit, Int128 sum, Int128 unit, std::string_view what) {
    return limit && sum >= *limit * unit ? fmt::format("{} {}", model::format_micros(*limit), what) : "";
  };
  const std::string time = reached(account.budget.gpu_time, account.sum.gpu_time, kMicroGpuHour, "GPU-hours");
  const std::string cost = reached(account.budget.cost, account.sum.cost, kMicroDollar, "dollars");
  return fmt::format("{} {} has spent its {}{}{} of this {}; the next begins at {}",
                     queue.first.empty() ? "ClusterQueue" : "LocalQueue", queue.second, time,
                     time.empty() || cost.empty() ? "" : " and ", cost, to_string(account.budget.window),
                     time_text(account.until, wall_offset_));
}

}  // namespace berth::quota
