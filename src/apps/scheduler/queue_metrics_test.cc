#include "apps/scheduler/queue_metrics.h"

#include <gmock/gmock.h>

#include "quota/testing.h"

namespace berth::apps {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class QueueMetricsTest : public quota::testing::OneQueue {
 protected:
  // Cycles until nothing changes, and what is told then.
  std::string told() {
    for (bool more = true; more;) {
      std::vector<quota::AdmissionDecision> decisions;
      more = admission.run_cycle(Time{}, decisions);
      metrics_.decided(decisions, admission, [](const auto&) {
        return QueueMetrics::Waited{Duration::seconds(1000), Duration::seconds(600)};
      });
    }
    metrics_.show(admission, admission.overview(), Time{});
    return metrics_.text();
  }

  QueueMetrics metrics_;
};

TEST_F(QueueMetricsTest, QuotaAndAdmissionCountOnceEach) {
  submit(workload("train"));
  EXPECT_THAT(told(), AllOf(HasSubstr("kueue_quota_reserved_workloads_total{cluster_queue=\"team\"} 1\n"),
                            HasSubstr("kueue_admitted_workloads_total{cluster_queue=\"team\"} 1\n"),
                            Not(HasSubstr("kueue_evicted_workloads_total{"))));
}

TEST_F(QueueMetricsTest, WhoHasQuotaAndWaitsForItsChecksIsNotAdmittedAndNotEvicted) {
  admission.upsert(model::AdmissionCheck{"budget", "example.com/c"});
  model::ClusterQueue queue = team();
  queue.checks = {{"budget"}};
  admission.upsert(queue);
  submit(workload("train"));
  const std::string series = "{cluster_queue=\"team\",cohort=\"\",flavor=\"default\",resource=\"nvidia.com/gpu\"}";
  EXPECT_THAT(told(),
              AllOf(HasSubstr("kueue_quota_reserved_workloads_total{cluster_queue=\"team\"} 1\n"),
                    HasSubstr("kueue_quota_reserved_wait_time_seconds_sum{cluster_queue=\"team\"} 1000\n"),
                    Not(HasSubstr("kueue_admitted_workloads_total{")), Not(HasSubstr("kueue_evicted_workloads_total{")),
                    HasSubstr("kueue_cluster_queue_resource_reservation" + series + " 4\n"),
                    HasSubstr("kueue_cluster_queue_resource_usage" + series + " 0\n")));
  admission.check_state(admission.find("train"), {"budget", quota::CheckState::kReady, "", {}}, Time{});
  EXPECT_THAT(told(), AllOf(HasSubstr("kueue_quota_reserved_workloads_total{cluster_queue=\"team\"} 1\n"),
                            HasSubstr("kueue_admitted_workloads_total{cluster_queue=\"team\"} 1\n"),
                            HasSubstr("kueue_admission_wait_time_seconds_sum{cluster_queue=\"team\"} 1000\n"),
                            HasSubstr("kueue_admission_checks_wait_time_seconds_sum{cluster_queue=\"team\"} 600\n"),
                            HasSubstr("kueue_cluster_queue_resource_usage" + series + " 4\n")));
}

TEST_F(QueueMetricsTest, PartsOfAGpuAreToldInGpus) {
  model::Workload share = workload("share");
  share.pod_sets.front().requests.set(quota::testing::kGpu, 250'000);
  submit(share);
  const std::string series = "{cluster_queue=\"team\",cohort=\"\",flavor=\"default\",resource=\"nvidia.com/gpu\"}";
  EXPECT_THAT(told(), AllOf(HasSubstr("kueue_cluster_queue_resource_usage" + series + " 0.25\n"),
                            HasSubstr("kueue_cluster_queue_nominal_quota" + series + " 4\n")));
}

TEST_F(QueueMetricsTest, WhatWasCountedOfAQueueGoesWithIt) {
  submit(workload("train"));
  told();
  admission.remove(admission.find("train"));
  admission.remove(team());
  EXPECT_THAT(told(), Not(HasSubstr("cluster_queue=\"team\"")));
}

}  // namespace
}  // namespace berth::apps
