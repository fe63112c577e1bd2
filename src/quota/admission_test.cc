#include "quota/admission.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "base/testing.h"

namespace berth::quota {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kCpu = "cpu";
using model::PreemptionPolicy;

template <typename T>
T any_of(Rng& rng, std::initializer_list<T> values) {
  return values.begin()[rng.below(values.size())];
}

// A fleet by seed: two flavors, a few cohorts, queues of all policies, checks and times; and what happens to it.
// Whatever is evicted lets go at once.
class RandomFleet {
 public:
  explicit RandomFleet(uint64_t seed) : rng_(seed), options_(options(seed)), admission_(options_) {
    for (const char* check : {"budget", "license"}) admission_.upsert(model::AdmissionCheck{check, "example.com/c"});
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
    switch (rng_.below(16)) {
      case 0: finish_one(); break;
      case 10:
      case 11:
      case 12: report_check(); break;
      case 13: report_pods(); break;
      case 14: now_ = now_ + Duration::seconds(static_cast<int64_t>(rng_.below(300))); break;
      case 15: activate_one(); break;
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
      end_terms();
      for (const AdmissionDecision& decision : decisions) judge(decision);
      judge_usage();
      for (const AdmissionDecision& decision : decisions)
        if (decision.kind == AdmissionDecision::Kind::kEvict) admission_.released(decision.workload);
      if (!changes) return judge_times();
    }
    FAIL() << "does not settle";
  }

  size_t admitted() const { return admitted_; }
  size_t evicted() const { return evicted_; }
  size_t late() const { return late_; }
  size_t kept() const { return admission_.kept().in_all; }
  size_t overdue() const { return overdue_; }
  size_t failed() const { return failed_; }

 private:
  static FairRules rules(uint64_t seed) {
    if (seed % 3 == 0) return {FairRule::kLessThanOrEqualToFinalShare};
    if (seed % 3 == 1) return {FairRule::kLessThanInitialShare};
    return {FairRule::kLessThanOrEqualToFinalShare, FairRule::kLessThanInitialShare};
  }

  static AdmissionOptions options(uint64_t seed) {
    AdmissionOptions out;
    if (seed % 2 == 0) out.fair = rules(seed);
    out.pods_ready.enabled = seed % 4 < 2;
    out.pods_ready.timeout = Duration::seconds(100);
    out.pods_ready.block_admission = seed % 8 == 0;
    out.pods_ready.backoff_limit = 2;
    out.usage.half_life = Duration::seconds(200);
    out.reservations = {.enabled = seed % 3 != 0, .after = Duration::seconds(30), .retry = Duration::seconds(10)};
    return out;
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
    if (rng_.below(4) == 0) queue.checks = {{"budget"}};
    if (rng_.below(6) == 0) queue.checks.push_back({"license", {"h100"}});
    queue.usage_based = rng_.below(3) == 0;
    for (const char* more : {"", "'"})
      admission_.upsert(model::LocalQueue{"default", "l" + std::to_string(i) + more, queue.name,
                                          model::StopPolicy::kNone, static_cast<int64_t>(rng_.below(3)) * 1000});
    admission_.upsert(std::move(queue));
  }

  void submit() {
    model::Workload workload;
    workload.namespace_name = "default";
    workload.name = "w" + std::to_string(submitted_);
    workload.uid = workload.name;
    workload.queue = "l" + std::to_string(rng_.below(static_cast<uint64_t>(queues_))) + any_of(rng_, {"", "'"});
    if (rng_.below(4) == 0) workload.max_execution = Duration::seconds(static_cast<int64_t>(1 + rng_.below(200)));
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
    if (running.empty()) return;
    const WorkloadId id = running[rng_.below(running.size())];
    admission_.finish(id);
    forget(id);
  }

  void report_check() {
    if (known_.empty()) return;
    const WorkloadId id = known_[rng_.below(known_.size())];
    const CheckState state = any_of(rng_, {CheckState::kReady, CheckState::kReady, CheckState::kReady,
                                           CheckState::kPending, CheckState::kRetry, CheckState::kRejected});
    admission_.check_state(id, {any_of(rng_, {"budget", "license"}), state, "", Duration::seconds(30)}, now_);
  }

  void report_pods() {
    for (const WorkloadId id : known_) {
      const bool ready = rng_.below(4) > 0;
      if (rng_.below(2) == 0 || admission_.status(id).phase != WorkloadPhase::kAdmitted) continue;
      admission_.pods_ready(id, ready, now_);
      if (ready) ready_.insert(id);
      else ready_.erase(id);
    }
  }

  // What was deactivated is seen to be so, and made active again.
  void activate_one() {
    if (deactivated_.empty()) return;
    const WorkloadId id = *deactivated_.begin();
    deactivated_.erase(id);
    model::Workload workload = admission_.status(id).workload;
    workload.active = false;
    admission_.upsert(workload);
    workload.active = true;
    admission_.upsert(std::move(workload));
    ran_.erase(id);
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
    forget(known_[which]);
    admission_.remove(known_[which]);
    known_.erase(known_.begin() + static_cast<ptrdiff_t>(which));
  }

  void forget(WorkloadId id) {
    ran_.erase(id);
    since_.erase(id);
    left_.erase(id);
    deactivated_.erase(id);
    holds_.erase(id);
    ready_.erase(id);
  }

  // Who was evicted in the cycle before has let go by now.
  void end_terms() {
    for (const WorkloadId id : std::exchange(left_, {}))
      if (const auto since = since_.find(id); since != since_.end()) {
        ran_[id] = ran_[id] + (now_ - since->second);
        since_.erase(since);
      }
  }

  void judge_eviction(const AdmissionDecision& decision) {
    const WorkloadId id = decision.workload;
    ++evicted_;
    late_ += decision.reason == "PodsReadyTimeout" ? 1 : 0;
    overdue_ += decision.reason == "DeactivatedDueToMaximumExecutionTimeExceeded" ? 1 : 0;
    failed_ += decision.reason.ends_with("AdmissionCheck") ? 1 : 0;
    EXPECT_FALSE(decision.reason.empty());
    EXPECT_TRUE(holds_.contains(id));
    left_.insert(id);
    holds_.erase(id);
    ready_.erase(id);
    if (decision.deactivates) deactivated_.insert(id);
  }

  void judge(const AdmissionDecision& decision) {
    const WorkloadId id = decision.workload;
    if (decision.kind == AdmissionDecision::Kind::kEvict) return judge_eviction(decision);
    EXPECT_FALSE(deactivated_.contains(id));
    const WorkloadStatus& status = admission_.status(id);
    if (decision.kind == AdmissionDecision::Kind::kAdmit) {
      since_[id] = now_;
      if (status.evicted.empty()) { EXPECT_TRUE(std::ranges::all_of(status.checks, is_ready)); }
    }
    if (holds_.contains(id)) return;  // had its quota before
    if (options_.pods_ready.block_admission && options_.pods_ready.enabled) {
      EXPECT_TRUE(std::ranges::all_of(holds_, [&](WorkloadId other) { return ready_.contains(other); }));
    }
    holds_.insert(id);
    ++admitted_;
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

  static bool is_ready(const CheckReport& check) { return check.state == CheckState::kReady; }

  // Nobody is admitted for longer than he may be, and what is due in time has been done.
  void judge_times() {
    const std::optional<Time> due = admission_.next_due();
    EXPECT_TRUE(!due || *due > now_);
    for (const auto& [id, since] : since_) {
      const std::optional<Duration>& limit = admission_.status(id).workload.max_execution;
      if (limit && !left_.contains(id)) { EXPECT_LT(ran_[id] + (now_ - since), *limit); }
    }
  }

  // The books once more: what is admitted is what is in use, and everyone who waits is told why.
  void judge_usage() {
    const QuotaTree& tree = admission_.ledger().tree();
    std::map<std::pair<QuotaNode, FlavorResource>, int64_t> sums;
    for (const WorkloadId id : known_) {
      const WorkloadStatus& status = admission_.status(id);
      if (status.phase != WorkloadPhase::kAdmitted && status.phase != WorkloadPhase::kQuotaReserved) {
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
  AdmissionOptions options_;
  Admission admission_;
  int queues_ = 0, cohorts_ = 0, submitted_ = 0;
  size_t admitted_ = 0, evicted_ = 0, late_ = 0, overdue_ = 0, failed_ = 0;
  // Counted here once more.
  std::set<WorkloadId> holds_, ready_, deactivated_;
  std::set<WorkloadId> left_;  // evicted in the last cycle
  std::map<WorkloadId, Time> since_;
  std::map<WorkloadId, Duration> ran_;
  std::vector<WorkloadId> known_;
  Time now_;
};

TEST(AdmissionProperty, HistoriesEndAndNeverOverrunQuota) {
  const uint64_t histories = histories_to_play(200, 10'000);
  size_t admitted = 0, evicted = 0, late = 0, overdue = 0, failed = 0, kept = 0;
  for (uint64_t seed = 0; seed < histories && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomFleet fleet(seed);
    for (int step = 0; step < 40; ++step) fleet.step();
    admitted += fleet.admitted();
    evicted += fleet.evicted();
    late += fleet.late();
    kept += fleet.kept();
    overdue += fleet.overdue();
    failed += fleet.failed();
  }
  EXPECT_GT(admitted, histories * 5);
  EXPECT_GT(evicted, histories / 2);
  for (const size_t of_each : {late, overdue, failed, kept}) EXPECT_GT(of_each, histories / 10);
}

// Tells that `first` would have a place if others left, and has none when they have.
class BrokenPromises : public Places {
 public:
  Leave may_leave(WorkloadId) override { return Leave::kFreely; }
  bool fit(const PlaceRequest& request, const std::vector<WorkloadId>& gone, std::string* why) override {
    if (request.workload->name != "first" || !gone.empty()) return true;
    if (why != nullptr) *why = "no node has room";
    return false;
  }
  std::vector<WorkloadId> in_the_way(const PlaceRequest&, const std::vector<WorkloadId>& gone) override { return gone; }
  bool hold(const PlaceRequest& request, const std::vector<WorkloadId>& gone) override {
    return fit(request, gone, nullptr);
  }
  bool gives_way(const PlaceRequest&, const std::set<WorkloadId>&) override { return false; }
  CouldFit could_fit(const PlaceRequest&) override { return CouldFit::kYes; }
  std::optional<Time> keep(const PlaceRequest&, Time) override { return std::nullopt; }
  std::vector<std::string> kept_nodes(WorkloadId) const override { return {}; }
  const std::set<WorkloadId>& lacking() const override { return none_; }
  bool has_begun(WorkloadId) const override { return false; }
  std::vector<PodOf> pods(WorkloadId) const override { return {}; }
  void release(WorkloadId) override {}

 private:
  std::set<WorkloadId> none_;
};

TEST(Admission, EvictsNobodyAgainAndAgainForOneThatDoesNotComeInAllTheSame) {
  BrokenPromises places;
  Admission admission({}, &places);
  model::ResourceFlavor flavor;
  flavor.name = "default";
  admission.upsert(flavor);
  model::ClusterQueue queue;
  queue.name = "team";
  queue.groups = {{{kGpu}, {{"default", {{kGpu, {4, {}, {}}}}}}}};
  queue.preemption.within_queue = PreemptionPolicy::kLowerPriority;
  queue.namespaces.selects_nothing = false;
  admission.upsert(queue);
  admission.upsert(model::LocalQueue{"default", "team", "team"});
  admission.set_namespace_labels("default", {});
  const auto submit = [&](const std::string& name, int32_t priority) {
    model::Workload workload;
    workload.namespace_name = "default";
    workload.name = workload.uid = name;
    workload.queue = "team";
    workload.priority = priority;
    workload.pod_sets = {model::PodSet{}};
    workload.pod_sets[0].name = "main";
    workload.pod_sets[0].requests.set(kGpu, 2);
    return admission.upsert(std::move(workload));
  };
  int evictions = 0;
  const auto settle = [&] {
    evictions = 0;
    for (int cycle = 0; cycle < 200; ++cycle) {
      std::vector<AdmissionDecision> decisions;
      const bool changes = admission.run_cycle(Time{} + Duration::seconds(1), decisions);
      for (const AdmissionDecision& decision : decisions)
        if (decision.kind == AdmissionDecision::Kind::kEvict) ++evictions, admission.released(decision.workload);
      if (!changes) return;
      if (!decisions.empty()) admission.places_changed();
    }
    FAIL() << "does not settle";
  };
  const WorkloadId second = submit("second", 0);
  settle();
  submit("first", 10);
  settle();
  EXPECT_EQ(evictions, 5);
  EXPECT_EQ(admission.status(second).phase, WorkloadPhase::kAdmitted);
  submit("third", 0);  // something happens: it is tried again
  settle();
  EXPECT_GT(evictions, 0);
}

}  // namespace
}  // namespace berth::quota
