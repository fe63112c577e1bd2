// Workloads that had been admitted before the engine was there: they go on as they were.
#include <gtest/gtest.h>

#include <string>

#include "engine/testing.h"
#include "policy/registry.h"
#include "quota/admission.h"

namespace berth::scenario {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

constexpr const char* kGpu = "nvidia.com/gpu";

model::ClusterQueue queue_of(const std::string& name, int64_t gpus) {
  model::ClusterQueue queue;
  queue.name = name;
  queue.namespaces.selects_nothing = false;
  model::ResourceQuota quota;
  quota.nominal = gpus;
  queue.groups = {{{kGpu}, {{"gpus", {{kGpu, quota}}}}}};
  return queue;
}

// Of `pods` pods with two GPUs each.
model::Workload workload_of(const std::string& name, int32_t pods) {
  model::Workload out;
  out.namespace_name = "default";
  out.name = name;
  out.uid = "uid-" + name;
  out.queue = "team";
  model::PodSet& set = out.pod_sets.emplace_back();
  set.name = "main";
  set.count = pods;
  set.requests = {{kGpu, 2}};
  set.spec = make_pod("one", {{kGpu, 2}}).spec;
  return out;
}

std::vector<quota::PodSetAssignment> given(int32_t pods) {
  quota::PodSetAssignment set;
  set.name = "main";
  set.count = pods;
  set.flavors[kGpu] = {"gpus", quota::FlavorMode::kFit};
  set.usage = {{kGpu, 2 * pods}};
  return {set};
}

model::Pod pod_of(const std::string& workload, const std::string& name) {
  model::Pod pod = make_pod(name, {{kGpu, 2}});
  pod.workload = "default/" + workload;
  return pod;
}

struct RestoredWorkloads : ::testing::Test {
  Driver driver{policy::default_policies()};

  RestoredWorkloads() {
    driver.add(make_node("a", {{kGpu, 8}}));
    driver.apply(NamespaceUpserted{"default"});
    model::ResourceFlavor flavor;
    flavor.name = "gpus";
    driver.apply(QueueObjectUpserted{flavor});
  }
  void queues(int64_t gpus) {
    driver.apply(QueueObjectUpserted{queue_of("team", gpus)});
    driver.apply(QueueObjectUpserted{model::LocalQueue{"default", "team", "team"}});
  }
  const quota::WorkloadStatus& status(const std::string& name) const {
    const quota::Admission& admission = driver.engine().admission();
    return admission.status(admission.find("uid-" + name));
  }
};

TEST_F(RestoredWorkloads, TheyHoldTheirQuotaAndTheirPlaces) {
  queues(6);
  driver.add(bound_to(pod_of("old", "old-0"), "a"));  // pods and workloads are listed in any order
  driver.apply(WorkloadAdmitted{workload_of("old", 2), {"team", given(2)}});
  driver.apply(WorkloadUpserted{workload_of("new", 2)});
  const CycleResult result = driver.cycle();
  EXPECT_TRUE(result.admissions.empty());
  EXPECT_EQ(status("old").phase, quota::WorkloadPhase::kAdmitted);
  EXPECT_EQ(status("new").reason, "WaitingForQuota");
  driver.add(pod_of("old", "old-1"));
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-1"), "a") << "a place was kept for the pod that had not come";
  driver.add(pod_of("old", "old-2"));
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-2"), "") << "beyond what it was admitted with";
  driver.apply(WorkloadEnded{"uid-old"});
  EXPECT_EQ(driver.cycle().admissions.size(), 1U);
  EXPECT_EQ(status("new").phase, quota::WorkloadPhase::kAdmitted);
}

TEST_F(RestoredWorkloads, LessQuotaThanTheyHoldEvictsNobody) {
  queues(2);
  driver.apply(WorkloadAdmitted{workload_of("old", 3), {"team", given(3)}});
  EXPECT_TRUE(driver.cycle().admissions.empty());
  EXPECT_EQ(driver.engine().admission().queue_status("team").held.front().total, 6);
}

TEST_F(RestoredWorkloads, AQueueThatHasGoneLetsThemEnd) {
  driver.apply(WorkloadAdmitted{workload_of("old", 1), {"team", given(1)}});
  EXPECT_TRUE(driver.cycle().admissions.empty());
  EXPECT_EQ(status("old").phase, quota::WorkloadPhase::kAdmitted);
  queues(2);  // it is there after all
  driver.cycle();
  EXPECT_EQ(driver.engine().admission().queue_status("team").held.front().total, 2);
  driver.apply(WorkloadEnded{"uid-old", true});
  driver.cycle();
  EXPECT_EQ(driver.engine().admission().queue_status("team").held.front().total, 0);
}

TEST_F(RestoredWorkloads, OneThatIsLeavingGoesOnLeaving) {
  queues(4);
  driver.apply(WorkloadAdmitted{workload_of("old", 2), {"team", given(2), "Preempted"}});
  driver.apply(WorkloadUpserted{workload_of("new", 2)});
  EXPECT_TRUE(driver.cycle().admissions.empty());
  EXPECT_EQ(status("old").evicted, "Preempted");
  driver.apply(WorkloadReleased{"uid-old"});
  EXPECT_EQ(driver.cycle().admissions.size(), 1U) << "what it held is there for one of both";
}

TEST_F(RestoredWorkloads, OneThatHasQuotaAloneKeepsItsPlaceAndWaitsForItsChecks) {
  driver.apply(QueueObjectUpserted{model::AdmissionCheck{"budget", "example.com/budget"}});
  model::ClusterQueue queue = queue_of("team", 8);
  queue.checks = {{"budget"}};
  driver.apply(QueueObjectUpserted{queue});
  driver.apply(QueueObjectUpserted{model::LocalQueue{"default", "team", "team"}});
  driver.apply(
      WorkloadAdmitted{workload_of("old", 4), {.cluster_queue = "team", .assignment = given(4), .quota_only = true}});
  driver.add(pod_of("old", "old-0"));
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(status("old").phase, quota::WorkloadPhase::kQuotaReserved);
  EXPECT_EQ(driver.node_of("old-0"), "") << "it is not admitted";
  driver.apply(WorkloadCheckReported{"uid-old", {"budget", quota::CheckState::kReady}, driver.now()});
  EXPECT_EQ(driver.cycle().admissions.size(), 1U);
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(status("old").phase, quota::WorkloadPhase::kAdmitted);
  EXPECT_EQ(driver.node_of("old-0"), "a");
}

}  // namespace
}  // namespace berth::scenario
