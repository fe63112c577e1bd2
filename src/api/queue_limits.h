// What queues limit beside quota, and who submits work: annotations, and the condition that keeps what was spent.
//
// Of ClusterQueues, by their administrators:
//   berth.dev/user-limits: nvidia.com/gpu=8, cpu=64   what the workloads of one user may have of it together
// Of ClusterQueues and LocalQueues:
//   berth.dev/budget-gpu-hours: "5000"                as much GPU-time may be spent in a window of time,
//   berth.dev/budget-dollars: "12000"                 as much money, by the prices in berth.yaml
//   berth.dev/budget-window: week                     or day, or month, which holds by default; in UTC
//   berth.dev/budget-when-spent: drain                those who run leave, too; by default nobody more is let in (hold)
// Of Jobs, pods and Workloads:
//   berth.dev/user: alice                             who submitted it; `berth webhook` writes it
// A value that is no such thing counts as absent; on a cluster its queue lets nobody in. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/kueue.h"
#include "api/meta.h"
#include "model/budget.h"
#include "model/resources.h"

namespace berth::api {

inline constexpr std::string_view kUserAnnotation = "berth.dev/user";
inline constexpr std::string_view kUserLimitsAnnotation = "berth.dev/user-limits";
inline constexpr std::string_view kBudgetGpuHoursAnnotation = "berth.dev/budget-gpu-hours";
inline constexpr std::string_view kBudgetDollarsAnnotation = "berth.dev/budget-dollars";
inline constexpr std::string_view kBudgetWindowAnnotation = "berth.dev/budget-window";
inline constexpr std::string_view kBudgetWhenSpentAnnotation = "berth.dev/budget-when-spent";
inline constexpr std::string_view kBudgetCondition = "berth.dev/WithinBudget";

// What is wrong with the value of one of these annotations, and the way out; empty: nothing, or it is none of them.
std::string queue_limit_problem(std::string_view key, const std::string& value);
// The same of all limits of a ClusterQueue or LocalQueue, with their names.
std::string unreadable_limits(const ClusterQueue& queue);
std::string unreadable_limits(const LocalQueue& queue);
// Limits of users that limit nothing, since the queue does not cover the resource; empty: there are none.
std::string idle_user_limits(const model::ClusterQueue& queue);

// Empty: nobody has said.
std::string user_of(const ObjectMeta& metadata);
model::ResourceList user_limits_of(const ObjectMeta& metadata);
model::Budget budget_of(const ObjectMeta& metadata);

// What is spent in each hour from then on: micro-GPUs, and micro-dollars.
struct SpendingRate {
  int64_t gpus = 0, cost = 0;
};
// "41.25 of 100 GPU-hours and 12.5 of 500 dollars of the month since 2026-11-01T00:00:00Z, counted until
// 2026-11-23T16:00:00Z, since then 8 GPUs at 16 dollars/hour", the message of the condition; the last part only where
// somebody spends.
std::string budget_message(const model::Budget& budget, const model::Spent& spent, const SpendingRate& rate = {});
// What the message of that condition says; none: it is not there, or says nothing of the kind.
std::optional<model::Spent> spent_of(const std::vector<Condition>& conditions);
// All 0 where it names none.
SpendingRate spending_rate_of(const std::vector<Condition>& conditions);
// What has been spent by `now`, by the wall clock, if those who spent when it was written have done so ever since.
model::Spent spent_by(model::Spent written, const SpendingRate& rate, Period window, Time now);

}  // namespace berth::api
