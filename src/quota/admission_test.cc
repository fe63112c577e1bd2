#include "quota/admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/rng.h"

namespace berth::quota {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kCpu = "cpu";
using model::PreemptionPolicy;

template <typename T>
T any_of(Rng& rng, std::initializer_list<T> values) {
  return values.begin()[rng.below(values.size())];
}

// A fleet by seed: two flavors, a few cohorts, queues of all policies; and what happens to it. Whatever is evicted
// lets go at once.
class RandomFleet {
 public:
  explicit RandomFleet(uint64_t seed)
      : rng_(seed), admission_(AdmissionOptions{seed % 2 == 0 ? std::optional<FairRules>(rules(seed)) : std::nullopt}) {
    for (const char* flavor : {"h100", "a100"}) {
      model::ResourceFlavor made;
      made.name = flavor;
      admission_.upsert(std::move(made));
    }
    const int cohorts = static_cast<int>(rng_.below(4));
    for (int i = 0; i < cohorts; ++i) {
      const std::string parent = i > 0 && rng_.below(2) == 0 ? "c" + std::to_string(rng_.below(i)) : "";
      admission_.upsert(
          model::Cohort{"c" + std::to_string(i), parent,
                        rng_.below(2) == 0 ? groups(6, !parent.empty()) : std::vector<model::ResourceGroup>{},
                        static_cast<int64_t>(rng_.below(3)) * 500});
    }
    queues_ = 1 + static_cast<int>(rng_.below(5));
    for (int i = 0; i < queues_; ++i) upsert_queue(i, cohorts);
    admission_.set_namespace_labels("default", {});
    cohorts_ = cohorts;
  }

  void step() {
    switch (rng_.below(10)) {
      case 0: finish_one(); break;
      case 1: rng_.below(2) == 0 ? remove_one() : update_one(); break;
      case 2: upsert_queue(static_cast<int>(rng_.below(queues_)), cohorts_); break;  // perhaps below what is in use
      default: submit(); break;
    }
    settle();
  }

  // Cycles until nothing changes; each decision is judged.
  void settle() {
    for (int cycle = 0; cycle < 500; ++cycle) {
      now_ = now_ + Duration::seconds(1);
      std::vector<AdmissionDecision> decisions;
      const bool changes = admission_.run_cycle(now_, decisions);
      for (const AdmissionDecision& decision : decisions) judge(decision);
      judge_usage();
      for (const AdmissionDecision& decision : decisions)
        if (decision.kind == AdmissionDecision::Kind::kEvict) admission_.released(decision.workload);
      if (!changes) return;
    }
    FAIL() << "does not settle";
  }

  size_t admitted() const { return admitted_; }
  size_t evicted() const { return evicted_; }

 private:
  static FairRules rules(uint64_t seed) {
    if (seed % 3 == 0) return {FairRule::kLessThanOrEqualToFinalShare};
    if (seed % 3 == 1) return {FairRule::kLessThanInitialShare};
    return {FairRule::kLessThanOrEqualToFinalShare, FairRule::kLessThanInitialShare};
  }

  model::ResourceQuota quota(uint64_t most, bool limits) {
    model::ResourceQuota out{static_cast<int64_t>(rng_.below(most + 1)), {}, {}};
    if (limits && rng_.below(3) == 0) out.borrowing_limit = static_cast<int64_t>(rng_.below(5));
    if (limits && rng_.below(4) == 0) out.lending_limit = static_cast<int64_t>(rng_.below(out.nominal + 1));
    return out;
  }

  std::vector<model::ResourceGroup> groups(uint64_t most, bool limits) {
    model::ResourceGroup gpus{{kGpu}, {}};
    for (const char* flavor : {"h100", "a100"})
      if (gpus.flavors.empty() || rng_.below(2) == 0) gpus.flavors.push_back({flavor, {{kGpu, quota(most, limits)}}});
    return {gpus, {{kCpu}, {{"h100", {{kCpu, quota(20, limits)}}}}}};
  }

  void upsert_queue(int i, int cohorts) {
    model::ClusterQueue queue;
    queue.name = "q" + std::to_string(i);
    if (cohorts > 0 && rng_.below(5) > 0) queue.cohort = "c" + std::to_string(rng_.below(cohorts));
    queue.groups = groups(8, !queue.cohort.empty());
    queue.strategy = any_of(rng_, {model::QueueingStrategy::kStrictFifo, model::QueueingStrategy::kBestEffortFifo});
    queue.namespaces.selects_nothing = false;
    queue.preemption.within_queue = any_of(rng_, {PreemptionPolicy::kNever, PreemptionPolicy::kLowerPriority,
                                                  PreemptionPolicy::kLowerOrNewerEqualPriority});
    queue.preemption.reclaim_within_cohort =
        any_of(rng_, {PreemptionPolicy::kNever, PreemptionPolicy::kLowerPriority, PreemptionPolicy::kAny});
    queue.preemption.borrow_within_cohort = rng_.below(3) == 0;
    queue.fungibility = {rng_.below(2) == 0, rng_.below(2) == 0, rng_.below(2) == 0};
    queue.fair_weight = static_cast<int64_t>(rng_.below(4)) * 500;
    queue.stop = rng_.below(12) == 0 ? model::StopPolicy::kHoldAndDrain : model::StopPolicy::kNone;
    admission_.upsert(model::LocalQueue{"default", "l" + std::to_string(i), queue.name, model::StopPolicy::kNone});
    admission_.upsert(std::move(queue));
  }

  void submit() {
    model::Workload workload;
    workload.namespace_name = "default";
    workload.name = "w" + std::to_string(submitted_);
    workload.uid = workload.name;
    workload.queue = "l" + std::to_string(rng_.below(static_cast<uint64_t>(queues_)));
    workload.priority = static_cast<int32_t>(rng_.below(3));
    workload.created = now_;
    const int sets = 1 + static_cast<int>(rng_.below(2));
    for (int i = 0; i < sets; ++i) {
      model::PodSet set;
      set.name = "s" + std::to_string(i);
      set.count = 1 + static_cast<int32_t>(rng_.below(3));
      if (rng_.below(3) == 0) set.min_count = 1 + static_cast<int32_t>(rng_.below(static_cast<uint64_t>(set.count)));
      set.requests.set(kGpu, static_cast<int64_t>(rng_.below(4)));
      if (rng_.below(2) == 0) set.requests.set(kCpu, static_cast<int64_t>(rng_.below(6)));
      workload.pod_sets.push_back(std::move(set));
    }
    ++submitted_;
    known_.push_back(admission_.upsert(std::move(workload)));
  }

  void finish_one() {
    std::vector<WorkloadId> running;
    for (const WorkloadId id : known_)
      if (admission_.status(id).phase == WorkloadPhase::kAdmitted) running.push_back(id);
    if (!running.empty()) admission_.finish(running[rng_.below(running.size())]);
  }

  // Another priority, or some pods that are done.
  void update_one() {
    if (known_.empty()) return;
    model::Workload workload = admission_.status(known_[rng_.below(known_.size())]).workload;
    workload.priority = static_cast<int32_t>(rng_.below(3));
    model::PodSet& set = workload.pod_sets[rng_.below(workload.pod_sets.size())];
    set.reclaimable = std::max(set.reclaimable, static_cast<int32_t>(rng_.below(static_cast<uint64_t>(set.count) + 1)));
    admission_.upsert(std::move(workload));
  }

  void remove_one() {
    if (known_.empty()) return;
    const size_t which = rng_.below(known_.size());
    admission_.remove(known_[which]);
    known_.erase(known_.begin() + static_cast<ptrdiff_t>(which));
  }

  void judge(const AdmissionDecision& decision) {
    if (decision.kind == AdmissionDecision::Kind::kEvict) {
      ++evicted_;
      EXPECT_FALSE(decision.reason.empty());
      return;
    }
    ++admitted_;
    const WorkloadStatus& status = admission_.status(decision.workload);
    ASSERT_EQ(decision.assignment.size(), status.workload.pod_sets.size());
    for (size_t i = 0; i < decision.assignment.size(); ++i) {
      const model::PodSet& asked = status.workload.pod_sets[i];
      EXPECT_LE(decision.assignment[i].count, asked.count - asked.reclaimable);
      EXPECT_GE(decision.assignment[i].count, asked.min_count.value_or(asked.count) - asked.reclaimable);
    }
    // Nobody above the queue is beyond what it has: I2.
    const QuotaTree& tree = admission_.ledger().tree();
    const QuotaNode queue = tree.queue(decision.cluster_queue);
    for (const auto& [fr, amount] : usage_of(tree, decision.assignment, status.workload)) {
      if (amount > 0) { EXPECT_GE(tree.available(queue, fr), 0) << tree.name(queue) << " " << tree.flavor(fr); }
    }
  }

  // The books once more: what is admitted is what is in use, and everyone who waits is told why.
  void judge_usage() {
    const QuotaTree& tree = admission_.ledger().tree();
    std::map<std::pair<QuotaNode, FlavorResource>, int64_t> sums;
    for (const WorkloadId id : known_) {
      const WorkloadStatus& status = admission_.status(id);
      if (status.phase != WorkloadPhase::kAdmitted) {
        EXPECT_TRUE(status.assignment.empty());
        EXPECT_TRUE(status.phase == WorkloadPhase::kFinished || !status.reason.empty()) << status.workload.name;
        continue;
      }
      for (const auto& [fr, amount] : usage_of(tree, status.assignment, status.workload))
        sums[{tree.queue(status.cluster_queue), fr}] += amount;
    }
    for (uint32_t node = 0; node < tree.nodes(); ++node)
      for (uint32_t fr = 0; tree.is_queue({node}) && fr < tree.flavor_resources(); ++fr)
        ASSERT_EQ(tree.usage({node}, {fr}), (sums[{QuotaNode{node}, FlavorResource{fr}}]));
  }

  Rng rng_;
  Admission admission_;
  int queues_ = 0, cohorts_ = 0, submitted_ = 0;
  size_t admitted_ = 0, evicted_ = 0;
  std::vector<WorkloadId> known_;
  Time now_;
};

TEST(AdmissionProperty, HistoriesEndAndNeverOverrunQuota) {
  const uint64_t histories = std::getenv("BERTH_LONG") != nullptr ? 10'000 : 200;  // deterministic: a test
  size_t admitted = 0, evicted = 0;
  for (uint64_t seed = 0; seed < histories && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomFleet fleet(seed);
    for (int step = 0; step < 40; ++step) fleet.step();
    admitted += fleet.admitted();
    evicted += fleet.evicted();
  }
  EXPECT_GT(admitted, histories * 5);
  EXPECT_GT(evicted, histories / 2);
}

}  // namespace
}  // namespace berth::quota
