// Quota and place over random histories: workloads come, wait for checks, are admitted, evicted and finish; their pods
// come in any order, are bound, fail and end, are ready or too late; nodes come, go and are cordoned; queues change.
// After every step the engine's invariants hold, and after every cycle what is said here of quota and places is counted
// again by brute force.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.h"
#include "base/testing.h"
#include "engine/testing.h"
#include "policy/registry.h"
#include "quota/admission.h"

namespace berth::scenario {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;
using Kind = quota::AdmissionDecision::Kind;

constexpr std::string_view kGpu = "nvidia.com/gpu";

class History {
 public:
  explicit History(uint64_t seed)
      : times_out_(seed % 3 == 0), rng_(seed), driver_(policy::default_policies(), options(seed)) {
    driver_.apply(QueueObjectUpserted{model::AdmissionCheck{"budget", "example.com/budget"}});
    driver_.apply(QueueObjectUpserted{model::AdmissionCheck{"nodes", std::string(model::kProvisioningController)}});
    add_queue("red");
    add_queue("blue");
    for (int i = 0; i < 3; ++i) add_node();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      if (rng_.below(3) > 0) settle();
    }
    settle();
    if (!times_out_) drain();
  }

 private:
  struct Work {
    model::Workload spec;
    int pods_made = 0;
    bool reserved = false, admitted = false, leaving = false;  // reserved: it has quota, and waits for its checks
    int wanted = 0;
    std::set<std::string> pods;
  };

  static EngineOptions options(uint64_t seed) {
    EngineOptions out;
    out.admission.pods_ready.enabled = seed % 3 == 0;
    out.admission.pods_ready.timeout = Duration::seconds(40);
    out.admission.pods_ready.block_admission = seed % 6 == 0;
    out.reservations = {.enabled = seed % 5 != 0, .after = Duration::seconds(3), .retry = Duration::seconds(1)};
    if (seed % 4 == 0) out.admission.fair = quota::FairRules{quota::FairRule::kLessThanOrEqualToFinalShare};
    return out;
  }

  static int32_t least(const Work& work) {
    return work.spec.pod_sets.front().min_count.value_or(work.spec.pod_sets.front().count);
  }
  bool chance(uint64_t of) { return rng_.below(of) == 0; }

  void add_queue(const std::string& name) {
    model::ClusterQueue queue;
    queue.name = name;
    queue.cohort = "all";
    queue.namespaces = {};
    queue.preemption.within_queue = model::PreemptionPolicy::kLowerPriority;
    queue.preemption.reclaim_within_cohort =
        chance(2) ? model::PreemptionPolicy::kAny : model::PreemptionPolicy::kNever;
    if (chance(4)) queue.strategy = model::QueueingStrategy::kStrictFifo;
    if (chance(5)) queue.checks = {{"budget"}};
    if (chance(5)) queue.checks.push_back({"nodes"});
    const auto nominal = static_cast<int64_t>(rng_.below(12));
    queue.groups = {{{std::string(kGpu)}, {{"plain", {{std::string(kGpu), {nominal, {}, {}}}}}}}};
    driver_.apply(QueueObjectUpserted{model::ResourceFlavor{"plain", {}, {}, {}}});
    driver_.apply(QueueObjectUpserted{queue});
    driver_.apply(QueueObjectUpserted{model::LocalQueue{"default", name, name, model::StopPolicy::kNone}});
  }

  void add_node() {
    const std::string name = "n" + std::to_string(nodes_made_++);
    nodes_[name] = make_node(name, {{std::string(kGpu), static_cast<int64_t>(1 + rng_.below(6))}});
    driver_.add(nodes_[name]);
  }

  void submit() {
    Work work;
    const std::string name = "w" + std::to_string(works_made_++);
    work.spec.namespace_name = "default";
    work.spec.name = name;
    work.spec.uid = "uid-" + name;
    work.spec.owner_uid = "owner-" + name;
    work.spec.queue = chance(2) ? "red" : "blue";
    work.spec.priority = static_cast<int32_t>(rng_.below(3));
    work.spec.created = Time{static_cast<int64_t>(works_made_)};
    model::PodSet set;
    set.name = "main";
    set.count = static_cast<int32_t>(1 + rng_.below(4));
    if (chance(3)) set.min_count = 1;
    if (chance(2)) work.spec.runtime = Duration::seconds(static_cast<int64_t>(1 + rng_.below(30)));
    set.requests.set(std::string(kGpu), static_cast<int64_t>(1 + rng_.below(3)));
    set.spec = make_pod("any", set.requests).spec;
    work.spec.pod_sets.push_back(set);
    driver_.apply(WorkloadUpserted{work.spec});
    works_.emplace(work.spec.uid, work);
  }

  void make_pod_of(Work& work) {
    model::Pod pod = make_pod(work.spec.name + "-" + std::to_string(work.pods_made++));
    pod.spec = work.spec.pod_sets.front().spec;
    pod.priority = work.spec.priority;
    pod.owner_uid = work.spec.owner_uid;
    pod.workload = work.spec.full_name();
    pod.pod_set = chance(2) ? "main" : "";
    pod.created = driver_.now();
    work.pods.insert(pod.uid);
    driver_.add(pod);
  }

  void end_pod(Work& work, std::string uid) {
    work.pods.erase(uid);
    driver_.apply(PodDeleted{std::move(uid)});
  }

  Work* any(bool admitted) {
    std::vector<Work*> found;
    for (auto& [uid, work] : works_)
      if (work.admitted == admitted) found.push_back(&work);
    return found.empty() ? nullptr : found[rng_.below(found.size())];
  }

  // What a controller says of a workload that has quota, or what becomes of its pods.
  void report() {
    for (const auto& [uid, work] : works_) {
      if (work.reserved && !chance(3))
        for (const char* check : {"budget", "nodes"})
          driver_.apply(WorkloadCheckReported{
              uid,
              {check, chance(6) ? quota::CheckState::kRetry : quota::CheckState::kReady, "", Duration::seconds(10)},
              driver_.now()});
      if (work.admitted && chance(2)) driver_.apply(WorkloadPodsReady{uid, !chance(3), driver_.now()});
    }
  }

  void step() {
    switch (rng_.below(12)) {
      case 10:
      case 11: return report();
      case 0:
      case 1:
      case 2: return submit();
      case 3:
      case 4:  // a controller makes its pods, one more than it may now and then
        if (Work* work = any(true); work != nullptr)
          while (std::ssize(work->pods) < work->wanted + (chance(8) ? 1 : 0) && !chance(4)) make_pod_of(*work);
        return;
      case 5:
        if (Work* work = any(true); work != nullptr && !work->pods.empty()) end_pod(*work, *work->pods.begin());
        return;
      case 6:
        if (Work* work = any(true); work != nullptr) finish(*work);
        return;
      case 7: return chance(2) ? add_node() : change_node();
      case 8: {  // a pod that no queue knows of
        model::Pod pod = make_pod("other" + std::to_string(others_made_++), {{std::string(kGpu), 1}});
        pod.priority = static_cast<int32_t>(rng_.below(3));
        driver_.add(pod);
        others_.push_back(pod.uid);
        return;
      }
      default:
        if (!others_.empty() && chance(2)) {
          driver_.apply(PodDeleted{others_.back()});
          return others_.pop_back();
        }
        return chance(6) ? add_queue(chance(2) ? "red" : "blue") : submit();
    }
  }

  void change_node() {
    if (nodes_.empty()) return;
    auto at = std::next(nodes_.begin(), static_cast<std::ptrdiff_t>(rng_.below(nodes_.size())));
    if (chance(2)) {
      at->second.unschedulable = !at->second.unschedulable;
      return driver_.add(at->second);
    }
    const std::string name = at->first;
    nodes_.erase(at);
    driver_.apply(NodeDeleted{name});
  }

  void finish(Work& work) {
    const std::string uid = work.spec.uid;
    while (!work.pods.empty()) end_pod(work, *work.pods.begin());
    driver_.apply(WorkloadEnded{uid, chance(2)});
    works_.erase(uid);
  }

  // Cycles until nothing more is decided; who is evicted lets go in between.
  void settle(Duration between = Duration::seconds(1)) {
    for (int cycle = 0; cycle < 200; ++cycle) {
      const CycleResult result = driver_.cycle(between);
      for (const Decision& decision : result.decisions)
        if (decision.kind == DecisionKind::kEvict) leave(decision.pod_uid);
      for (const quota::AdmissionDecision& decision : result.admissions) follow(decision);
      driver_.confirm();
      bool idle = result.decisions.empty() && result.admissions.empty() && !result.unfinished, rests = idle;
      for (auto& [uid, work] : works_) {
        rests &= !work.leaving;
        if (!work.leaving || chance(3)) continue;
        release(work);
        idle = false;
      }
      count(idle);
      if (rests) return;
    }
    FAIL() << "it never comes to an end";
  }

  void leave(const std::string& uid) {
    for (auto& [name, work] : works_) work.pods.erase(uid);
    std::erase(others_, uid);
    driver_.apply(PodDeleted{uid});
  }

  void follow(const quota::AdmissionDecision& decision) {
    const std::string uid = driver_.engine().admission().status(decision.workload).workload.uid;
    Work& work = works_.at(uid);
    work.reserved = decision.kind == Kind::kReserve;
    work.admitted = decision.kind == Kind::kAdmit;
    work.leaving = decision.kind == Kind::kEvict;
    if (!work.leaving) work.wanted = decision.assignment.front().count;
  }

  void release(Work& work) {
    work.leaving = false;
    while (!work.pods.empty()) end_pod(work, *work.pods.begin());
    driver_.apply(WorkloadReleased{work.spec.uid});
  }

  // Whatever runs ends, again and again, until nothing does: nobody then waits who would have room alone, whoever keeps
  // some for whom.
  void drain() {
    const auto runs = [&](const std::string& uid) {
      const PodSlot slot = driver_.state().find_pod(uid);
      return slot.valid() && holds_room(driver_.state().pod(slot).phase) &&
             driver_.state().pod(slot).phase != PodPhase::kNominated;
    };
    for (int round = 0; round < 100; ++round) {
      std::vector<std::string> ended;
      for (const auto& [uid, work] : works_)
        if (work.admitted) ended.push_back(uid);
        else if (work.reserved)
          for (const char* check : {"budget", "nodes"})
            driver_.apply(WorkloadCheckReported{uid, {check, quota::CheckState::kReady, "", {}}, driver_.now()});
      for (const std::string& uid : ended) finish(works_.at(uid));
      for (const std::string& uid : std::exchange(others_, {}))
        if (runs(uid)) driver_.apply(PodDeleted{uid});
        else others_.push_back(uid);
      settle(Duration::seconds(60));
      if (::testing::Test::HasFatalFailure()) return;
    }
    const quota::Admission& admission = driver_.engine().admission();
    for (const auto& [uid, work] : works_) {
      const quota::WorkloadStatus& status = admission.status(admission.find(uid));
      ASSERT_FALSE(status.reason == "WaitingForPlace" &&
                   fits(work.spec.pod_sets.front(), work.reserved ? work.wanted : least(work), true))
          << work.spec.name << " waits for ever: " << status.message << picture();
    }
    const bool any_node = std::ranges::any_of(nodes_, [](const auto& node) { return !node.second.unschedulable; });
    ASSERT_TRUE(others_.empty() || !any_node) << others_.front() << " waits for ever" << picture();
  }

  // What is held is within what the cohort has, as long as no quota was lowered; pods run only for who is admitted, and
  // no more of them than that; an admitted workload with a place for each pod has that many GPUs charged for it; and no
  // node's are given twice.
  void count(bool rests) {
    const quota::Admission& admission = driver_.engine().admission();
    std::map<std::string, int64_t> placed, running;  // by workload: pods and stand-ins; pods
    std::map<std::string, int64_t> given;            // by node: GPUs, to pods and stand-ins
    for (const PodSlot slot : driver_.state().pods()) {
      const PodState& pod = driver_.state().pod(slot);
      if (holds_room(pod.phase) && pod.phase != PodPhase::kNominated)
        given[driver_.state().node(pod.node).node.name] += pod.pod.spec->requests.get(kGpu);
      if (pod.pod.workload.empty() || !holds_room(pod.phase)) continue;
      ++placed[pod.pod.workload];
      if (!pod.pod.stand_in) ++running[pod.pod.workload];
    }
    for (const auto& [name, gpus] : given)
      if (const auto node = nodes_.find(name); node != nodes_.end()) {
        ASSERT_LE(gpus, node->second.allocatable.get(kGpu)) << name << " is given twice" << picture();
      }
    // Those behind a head that waits for others to be ready are not looked at, and keep what they were told.
    const bool blocked = std::ranges::any_of(works_, [&](const auto& each) {
      return admission.status(admission.find(each.first)).reason == "WaitingForPodsReady";
    });
    const bool none_leaves = std::ranges::none_of(works_, [](const auto& each) { return each.second.leaving; });
    for (const auto& [uid, work] : works_) {
      const quota::WorkloadStatus& status = admission.status(admission.find(uid));
      const bool holds =
          status.phase == quota::WorkloadPhase::kAdmitted || status.phase == quota::WorkloadPhase::kQuotaReserved;
      ASSERT_EQ(holds, work.reserved || work.admitted || work.leaving);
      ASSERT_TRUE(!work.reserved || status.phase == quota::WorkloadPhase::kQuotaReserved);
      ASSERT_TRUE(!work.reserved || running[work.spec.full_name()] == 0);
      const int64_t places = placed[work.spec.full_name()];
      if (work.admitted || work.reserved) {
        ASSERT_LE(places, work.wanted) << work.spec.name;
      } else if (rests && !work.leaving && !blocked && status.reason == "WaitingForPlace" &&
                 admission.kept().rooms.empty()) {
        ASSERT_FALSE(fits(work.spec.pod_sets.front(), least(work)))
            << work.spec.name << ": " << status.message << "; at least "
            << work.spec.pod_sets.front().min_count.value_or(0) << picture();
      } else if (rests && !blocked && none_leaves &&
                 (status.reason == "WaitingForQuota" || status.reason == "PendingEvaluation") &&
                 admission.kept().rooms.empty()) {
        ASSERT_FALSE(has_its_own(work)) << work.spec.name << " waits for what is its own: " << status.message
                                        << picture();
      }
    }
  }

  // Whether all its pods would have quota beside what is held, without borrowing, and a place, too.
  bool has_its_own(const Work& work) const {
    const quota::Admission& admission = driver_.engine().admission();
    const quota::QuotaTree& tree = admission.ledger().tree();
    const quota::QuotaNode queue = tree.queue(work.spec.queue);
    const model::PodSet& set = work.spec.pod_sets.front();
    const quota::FlavorResource gpus = tree.find("plain", std::string(kGpu));
    const int64_t asked = set.requests.get(kGpu) * set.count;
    return admission.cluster_queues().at(work.spec.queue).strategy == model::QueueingStrategy::kBestEffortFifo &&
           tree.usage(queue, gpus) + asked <= tree.quota(queue, gpus).nominal &&
           tree.has_room(queue, {{gpus, asked}}) && fits(set, set.count);
  }

  std::string picture() const {
    std::string out;
    const quota::Admission& admission = driver_.engine().admission();
    for (const auto& [name, queue] : admission.cluster_queues()) {
      const auto& tree = admission.ledger().tree();
      const auto gpus = tree.find("plain", std::string(kGpu));
      out += fmt::format("\n{} {} nominal {} used {} strict {} reclaim {} stop {}", name, queue.cohort,
                         tree.quota(tree.queue(name), gpus).nominal, tree.usage(tree.queue(name), gpus),
                         queue.strategy == model::QueueingStrategy::kStrictFifo,
                         int(queue.preemption.reclaim_within_cohort), int(queue.stop));
    }
    for (const auto& [uid, work] : works_) {
      const auto& st = admission.status(admission.find(uid));
      out += fmt::format("\n{} q {} prio {} pods {}({})x{} phase {} leaving {} admitted {} {}: {}", work.spec.name,
                         work.spec.queue, work.spec.priority, work.spec.pod_sets.front().count, least(work),
                         work.spec.pod_sets.front().requests.get(kGpu), int(st.phase), work.leaving, work.admitted,
                         st.reason, st.message);
    }
    for (const auto& [name, node] : nodes_) {
      out +=
          " " + name + (node.unschedulable ? " cordoned" : "") + " " + std::to_string(node.allocatable.get(kGpu)) + ":";
      for (const PodSlot slot : driver_.state().node(driver_.state().find_node(name)).pods) {
        const PodState& pod = driver_.state().pod(slot);
        out += " " + pod.pod.uid + "/" + std::string(to_string(pod.phase)) + "/" +
               std::to_string(pod.pod.spec->requests.get(kGpu));
      }
    }
    return out;
  }

  // Whether so many pods of the set would find room beside all that have some now, or where nobody had.
  bool fits(const model::PodSet& set, int64_t pods, bool alone = false) const {
    int64_t room = 0;
    for (const auto& [name, node] : nodes_) {
      if (node.unschedulable) continue;
      int64_t free = node.allocatable.get(kGpu);
      for (const PodSlot pod : driver_.state().node(driver_.state().find_node(name)).pods)
        if (!alone) free -= driver_.state().pod(pod).pod.spec->requests.get(kGpu);
      room += std::max<int64_t>(0, free) / set.requests.get(kGpu);
    }
    return room >= pods;
  }

  const bool times_out_;  // whose pods are not ready in time, again and again
  Rng rng_;
  Driver driver_;
  std::map<std::string, model::Node> nodes_;
  std::map<std::string, Work> works_;
  std::vector<std::string> others_;
  int nodes_made_ = 0, works_made_ = 0, others_made_ = 0;
};

TEST(QueuedWorkloadsProperty, QuotaAndPlacesHoldOverRandomHistories) {
  const uint64_t histories = histories_to_play(150, 3000);
  for (uint64_t seed = 1; seed <= histories; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_THROW(History(seed).run(60));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace berth::scenario
