#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quota/admission.h"

namespace berth::quota {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";

// A queue of four GPUs without nodes; what is evicted is told, and lets go when the test says so.
class AdmissionTimes : public testing::Test {
 protected:
  explicit AdmissionTimes(AdmissionOptions options = {}) : admission(std::move(options)) {
    model::ResourceFlavor flavor;
    flavor.name = "default";
    admission.upsert(flavor);
    model::ClusterQueue queue;
    queue.name = "team";
    queue.namespaces = {};
    queue.groups = {{{kGpu}, {{"default", {{kGpu, {4, {}, {}}}}}}}};
    admission.upsert(queue);
    admission.upsert(model::LocalQueue{"default", "team", "team"});
  }

  static model::Workload workload(const std::string& name, int64_t gpus = 4) {
    model::Workload out;
    out.namespace_name = "default";
    out.name = out.uid = name;
    out.queue = "team";
    model::PodSet set;
    set.name = "main";
    set.requests.set(kGpu, gpus);
    out.pod_sets = {set};
    return out;
  }

  // Cycles at so many seconds until nothing changes; the evictions: "name: reason".
  std::vector<std::string> at(int64_t seconds) {
    std::vector<std::string> out;
    for (bool more = true; more;) {
      std::vector<AdmissionDecision> decisions;
      more = admission.run_cycle(Time{} + Duration::seconds(seconds), decisions);
      for (const AdmissionDecision& decision : decisions)
        if (decision.kind == AdmissionDecision::Kind::kEvict)
          out.push_back(admission.status(decision.workload).workload.name + ": " + decision.reason +
                        (decision.deactivates ? ", deactivated" : ""));
    }
    return out;
  }

  int64_t due() const {
    const std::optional<Time> next = admission.next_due();
    return next ? (*next - Time{}).nanos / Duration::seconds(1).nanos : -1;
  }
  WorkloadPhase phase(const char* name) const { return admission.status(admission.find(name)).phase; }

  Admission admission;
};

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kTooLong = "long: DeactivatedDueToMaximumExecutionTimeExceeded, deactivated";

TEST_F(AdmissionTimes, WithoutALimitNothingIsDue) {
  admission.upsert(workload("any"));
  at(1);
  EXPECT_EQ(due(), -1);
}

TEST_F(AdmissionTimes, MaximumExecutionTimeCountsFromAdmission) {
  model::Workload limited = workload("long");
  limited.max_execution = Duration::seconds(100);
  admission.upsert(limited);
  EXPECT_THAT(at(7), IsEmpty());
  EXPECT_EQ(due(), 107);
  EXPECT_THAT(at(106), IsEmpty());
  EXPECT_THAT(at(107), ElementsAre(kTooLong));
  EXPECT_EQ(due(), -1);
}

TEST_F(AdmissionTimes, TermsBeforeThisProcessCount) {
  model::Workload limited = workload("long");
  limited.max_execution = Duration::seconds(100);
  limited.past_execution = Duration::seconds(60);
  PodSetAssignment given{"main", 1};
  given.flavors[kGpu] = {"default", FlavorMode::kFit};
  given.usage.set(kGpu, 4);
  at(1);
  admission.restore(limited, "team", {given}, "", Time{} + Duration::seconds(5));
  at(20);
  EXPECT_EQ(due(), 45);
  EXPECT_THAT(at(45), ElementsAre(kTooLong));
}

TEST_F(AdmissionTimes, TermsAddUpUntilTheLastHasLetGo) {
  model::Workload limited = workload("long");
  limited.max_execution = Duration::seconds(100);
  const WorkloadId id = admission.upsert(limited);
  at(0);
  model::Workload stopped = limited;
  stopped.active = false;
  admission.upsert(stopped);
  EXPECT_THAT(at(30), ElementsAre("long: Deactivated"));
  admission.released(id);
  at(40);  // its pods took ten seconds to end
  admission.upsert(limited);
  at(50);
  EXPECT_EQ(due(), 110);
}

TEST_F(AdmissionTimes, WhatIsDeactivatedWaitsNoMoreAndBeginsAnewWhenItIsActive) {
  model::Workload limited = workload("long");
  limited.max_execution = Duration::seconds(100);
  const WorkloadId id = admission.upsert(limited);
  at(0);
  EXPECT_THAT(at(100), ElementsAre(kTooLong));
  admission.released(id);
  admission.upsert(limited);  // an update by someone who has not heard of it
  at(200);
  EXPECT_EQ(phase("long"), WorkloadPhase::kPending);
  EXPECT_EQ(admission.status(id).reason, "DeactivatedDueToMaximumExecutionTimeExceeded");
  limited.active = false;
  admission.upsert(limited);
  at(210);
  EXPECT_EQ(phase("long"), WorkloadPhase::kPending);
  limited.active = true;
  admission.upsert(limited);
  at(220);
  EXPECT_EQ(phase("long"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(due(), 320);
}

}  // namespace
}  // namespace berth::quota
