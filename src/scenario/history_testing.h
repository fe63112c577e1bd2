// For properties of long histories: manifests of a cluster and of the Jobs that come to it, and what must be true of
// all of them at their end.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scenario/testing.h"

namespace berth::scenario::testing {

inline constexpr const char* kQueueApi = "apiVersion: kueue.x-k8s.io/v1beta2, kind";

struct History {
  std::string cluster;            // without Jobs
  std::vector<std::string> jobs;  // j0, j1, …
  std::string all() const { return cluster + fmt::format("{}", fmt::join(jobs, "")); }
  bool is_strict(const std::string& queue) const {
    const size_t at = cluster.find("queueingStrategy: ", cluster.find("metadata: {name: " + queue));
    return cluster.substr(at).starts_with("queueingStrategy: StrictFIFO");
  }
};

inline void expect_no_quota_in_use(const Report& report) {
  for (const QueueReport& queue : report.queues)
    for (const auto& held : queue.held) EXPECT_EQ(held.used, 0) << queue.name;
}

// Plays the history to its end: no invariant is broken, no quota is left in use, and whoever could run alone, as a run
// with the `alone` options tells, has run, but for those behind one in a StrictFIFO queue that cannot. How many have
// finished. `is_over`: of a WorkloadReport.
template <typename IsOver>
size_t expect_whoever_can_has_run(const History& history, SimulationOptions options, const SimulationOptions& alone,
                                  const IsOver& is_over) {
  const auto cluster = prepare(history.all(), std::move(options));
  if (::testing::Test::HasFailure()) return 0;
  const bool ended = cluster->run_to_end();
  EXPECT_TRUE(ended);
  if (!ended) return 0;
  EXPECT_THAT(cluster->broken(), ::testing::IsEmpty());
  const auto runs_alone = [&](const std::string& name) {
    const auto one = prepare(history.cluster + history.jobs[std::stoul(name.substr(name.find('j') + 1))], alone);
    return one->run_to_end() && is_over(one->report().workloads.front());
  };
  const Report report = cluster->report();
  size_t finished = 0;
  for (const WorkloadReport& workload : report.workloads) {
    finished += workload.state == "Finished" ? 1 : 0;
    const bool is_behind = workload.message.starts_with("waits for its turn") && history.is_strict(workload.queue);
    if (is_over(workload) || is_behind) continue;
    EXPECT_FALSE(runs_alone(workload.name)) << workload.name << ": " << workload.message;
  }
  expect_no_quota_in_use(report);
  return finished;
}

}  // namespace berth::scenario::testing
