// Engine: the one deterministic state machine in which everything is scheduled.
//
//   engine.apply(event)              what the API server says, what became of a bind
//   engine.run_cycle(now, limits)    → decisions, each with its reason
//   engine.explain(uid)              → why a pod is not running, node by node
//
// The daemon, the simulator, the benchmarks and every test drive it; it knows no socket, clock or thread. Owner thread
// only. The same calls in the same order give the same results, byte for byte. A pod that fits nowhere may make room
// for itself: pods of lower priority on one node are told to leave (Evict), and it is nominated for the node: its room
// is charged there at once, and it is bound when they are gone.
//
// Invariants (design I1, I4, I5): no decision puts a node above its allocatable in any resource (over-use from outside
// is state, never a reason to stop); every pod of ours that waits is queued, nominated, backs off or is explained; a
// pod UID has at most one outstanding Bind.
#pragma once

#include <absl/container/btree_set.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/decision.h"
#include "engine/engine_options.h"
#include "engine/event.h"
#include "engine/explanation.h"
#include "engine/failure_sets.h"
#include "engine/forecast.h"
#include "engine/kept_gpus.h"
#include "engine/pending_queue.h"
#include "engine/policy_set.h"
#include "engine/rejections.h"
#include "engine/runtime_ratios.h"
#include "engine/state.h"

namespace berth::quota {
class Admission;
}

namespace berth::engine {
class QueuedWorkloads;

class Engine {
 public:
  explicit Engine(PolicySet policies, EngineOptions options = {});
  ~Engine();

  void apply(Event event);
  CycleResult run_cycle(Time now, const CycleLimits& limits = {});
  // Why the pod is where it is, node by node; see engine/explanation.h. O(nodes); for people, not for every pod. Tries
  // out on the live state whom the pod could preempt, and puts everything back.
  Explanation explain(const std::string& uid);

  // When a pod with a place has ended, by what it declares; of an admitted workload's pod, by what the workload does.
  // None: that is not declared. A time that has passed: it runs longer than it said.
  std::optional<Time> expected_end(PodSlot pod) const;
  std::optional<Time> expected_end(quota::WorkloadId workload) const;  // while it is admitted
  // When pods and workloads that wait will start, by what those declare who run; plays that in a second engine.
  Forecasts forecast(const ForecastLimits& limits = {}) const;
  const RuntimeRatios& runtime_ratios() const { return ratios_; }  // of pods that have ended by themselves
  const State& state() const { return state_; }
  const quota::Admission& admission() const;  // as of the last cycle
  const PolicySet& policies() const { return policies_; }
  // The waiting pods by class; after a cycle that has finished, all of them are of blocked classes.
  const PendingQueue& queue() const { return queue_; }
  size_t pending_pods() const { return queue_.size() + nominees_.size(); }
  size_t nominated_pods() const { return nominees_.size(); }
  size_t backoff_pods() const { return backoff_.size(); }
  // Where CycleResult::held: the pod that has not been given its place yet; else invalid, or QueuedWorkloads has one.
  PodSlot held() const { return held_; }
  const QueuedWorkloads& workloads() const { return *workloads_; }
  // The pods for which a node is kept, since they have waited long, in the queue's order; how often one has been.
  std::vector<PodSlot> reserved_pods() const;
  uint64_t reservations() const { return reservations_; }
  DuePods due_pods() const;  // that ask for GPUs
  const KeptGpus& kept_gpus() const { return kept_gpus_; }
  // Waiting pods whose class fits nowhere as of the last cycle, the nominated among them.
  size_t unschedulable_pods() const;
  size_t memory_bytes() const;

 private:
  friend std::vector<std::string> broken_invariants(const Engine& engine);

  void on(NodeUpserted&& event);
  void on(const NodeDeleted& event);
  void on(NodesReplaced&& event);
  void on(const NodeRepartitioning& event);
  void on(const GpusKept& event);
  void on(PodUpserted&& event);
  void on(const PodDeleted& event);
  void on(PodsReplaced&& event);
  void on(const NamespaceUpserted& event);
  void on(const StorageUpserted& event);
  void on(const StorageDeleted& event);
  void on(const StorageReplaced& event);
  void on(const BudgetUpserted& event);
  void on(const BudgetDeleted& event);
  void on(const BudgetsReplaced& event);
  void on(QueueObjectUpserted&& event);
  void on(const QueueObjectDeleted& event);
  void on(WorkloadUpserted&& event);
  void on(WorkloadAdmitted&& event);
  void on(const WorkloadEnded& event);
  void on(const WorkloadReleased& event);
  void on(const WorkloadPodsReady& event);
  void on(const WorkloadCheckReported& event);
  void on(const OwnerQueued& event);
  void on(const BindProgress& event);
  void on(const EvictionFailed& event);
  void on(const ClockAdvanced& event) { now_ = std::max(now_, event.now); }

  void reclassify();
  void resolve_placement(model::Pod& pod) const;
  void upsert(model::Pod&& pod);
  void replace(PodSlot slot, model::Pod&& pod);
  void forget_pod(PodSlot slot, bool ended = false);
  void leave_queue(PodSlot slot);
  void settle(PodSlot slot);
  void enqueue(PodSlot slot);
  Time backs_off_until(const PodState& pod) const;
  void back_off(PodSlot slot, Time until);
  void release_backoffs(Time now);
  void adopt_nomination(PodSlot slot);
  bool waits(const model::Pod& pod) const;  // pods of workloads: engine/engine_workloads.cc
  void take_up(PodSlot slot);
  void give_place_back(PodSlot slot, NodeSlot node);
  void settle_freed();
  void meet_arrivals();
  bool admit(WorkBudget& work, CycleResult& result);

  struct Wake;
  Wake wake_blocked(WorkBudget& work);
  bool wake(const std::vector<ClassId>& classes, WorkBudget& work);
  bool look_at(ClassId id, ClassQueue& cls, WorkBudget& work);
  bool place_waiting(const CycleLimits& limits, WorkBudget& work, CycleResult& result);
  bool take_turn(PodSlot pod, WorkBudget& work, CycleResult& result);
  struct SetTurn;  // waiting pods as a set: engine/engine_set.cc
  void note_new();
  bool may_search_set(PodSlot head, SetTurn& turn) const;
  Time due_until(int32_t priority) const;
  bool place_set(const SetTurn& turn, const CycleLimits& limits, WorkBudget& work, CycleResult& result);
  bool gives_way(PodSlot pod, NodeSlot node) const;
  void place(PodSlot pod, NodeSlot node, CycleResult& result);
  Time began(const PodState& pod) const;  // declared runtimes: engine/engine_time.cc
  void note_runtime(const PodState& ended);
  std::string time_text(Time time) const;
  std::pair<std::vector<std::string>, uint32_t> fitting_nodes(PodSlot pod);
  VictimSearch::Context search_context() { return {state_, policies_, rules_, residents_, now_}; }
  bool look_for_victims(ClassId id, ClassQueue& cls, WorkBudget& work);  // preemption: engine/engine_preemption.cc
  bool make_room(PodSlot pod, ClassQueue& cls, CycleResult& result);
  void give_back_kept(NodeSlot node);
  void nominate(PodSlot pod, NodeSlot node);
  void withdraw_nomination(PodSlot pod);
  void displace(const std::vector<PodSlot>& nominees);
  bool has_place_without_nomination(PodSlot pod, ClassQueue& cls);
  bool starts_without_lesser(PodSlot pod, ClassQueue& cls, std::vector<PodSlot>& displaced);
  bool follow_nomination(PodSlot pod, const CycleLimits& limits, WorkBudget& work, CycleResult& result);
  void release_refused();
  void pause_preemption(PodSlot pod);
  void end_pauses();

  struct Reserve;    // room kept for who has waited long: engine/engine_reserve.h
  struct Rehearsal;  // what comes next: engine/rehearsal.h
  std::string verdict_text(const PodClass& cls, const Candidates& candidates, const PreemptionView& preemption,
                           const FailureSets& sets) const;
  void update_verdict(ClassQueue& cls);
  bool report(int64_t limit, CycleResult& result);
  void find_wakeup(CycleResult& result) const;

  const PolicySet policies_;
  const EngineOptions options_;
  const bool measures_mix_ = policies_.needs_mix();
  State state_{policies_.nodes, policies_.queues};
  FailureSets failure_sets_;
  PendingQueue queue_{state_};
  absl::btree_set<std::pair<Time, std::string>> backoff_;  // (until, UID)
  Rejections rejections_;
  DisruptionRules rules_;
  Residents residents_;
  RuntimeRatios ratios_;
  absl::btree_set<PodSlot, QueueOrder> nominees_{QueueOrder{&state_}};
  absl::btree_set<std::pair<Time, std::string>> pauses_;   // pods that preempt nobody for a while: (until, UID)
  absl::btree_set<std::pair<Time, std::string>> refused_;  // pods that could not be evicted: (until, UID)
  absl::flat_hash_map<std::string, model::Placement> namespace_placement_;  // those that are not the default
  KeptGpus kept_gpus_{state_};
  std::unique_ptr<QueuedWorkloads> workloads_;
  absl::btree_set<std::string> arrivals_;  // UIDs of pods of workloads that came since the last cycle
  PodSlot held_;                           // the pod at which the last cycle stopped, for those that wait before it
  PodSlot let_by_;                         // this cycle: pods up to this one need not give way
  Time now_;
  uint64_t cycle_ = 0;
  uint32_t wake_cursor_ = 0;                       // the blocked class at which work ran out; 0: none
  uint64_t verdict_texts_ = 0, reservations_ = 0;  // so far
  std::vector<PodSlot> newly_seen_;  // since the last cycle, queued or bound by others; some may have left
  bool set_too_large_ = false;       // for the work of a cycle, as a search has found that is not finished yet
};

}  // namespace berth::engine
