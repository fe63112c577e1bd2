// Admission: which workloads hold quota, in what order, and who has to give it back.
//
// A cycle looks at the head of every ClusterQueue: each gets flavors on its own, then they are taken in order, and what
// no longer fits waits for the next cycle. One that fits nowhere is parked (BestEffortFIFO) until something could help
// it, or stays the head (StrictFIFO), as in Kueue (https://kueue.sigs.k8s.io/docs/concepts/). Where there are Places to
// ask, a workload is admitted only with a place for all of its pods. A flavor that has none is passed over; if none has
// any, those are evicted whose going gives the workload both quota and a place, and nobody where that cannot be had.
// One thread; time only comes in with calls and never goes back. Same calls, same decisions.
// Invariants: 1. what a ClusterQueue's workloads hold is its usage in the ledger's tree; 2. no decision takes a node of
// the tree above what is available to it (lowered quota may leave it above); 3. a workload is in one place: pending,
// parked, held back, admitted or finished.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "quota/admission_record.h"
#include "quota/local_usage.h"
#include "quota/status.h"

namespace berth::quota {

class Admission {
 public:
  explicit Admission(AdmissionOptions options, Places* places = nullptr);  // it outlives this; null: all have a place

  // Configuration; takes effect with the next cycle.
  void upsert(model::ResourceFlavor flavor);
  void upsert(model::ClusterQueue queue);
  void upsert(model::Cohort cohort);
  void upsert(model::LocalQueue queue);
  void upsert(model::AdmissionCheck check);
  void set_namespace_labels(const std::string& name, model::Labels labels);
  void reconfigure();  // something else changed that everybody is to be looked at anew for: who may be evicted
  // A ClusterQueue that still has admitted workloads goes after the last of them, and admits no more until then.
  void remove(const model::ResourceFlavor& flavor);
  void remove(const model::ClusterQueue& queue);
  void remove(const model::Cohort& cohort);
  void remove(const model::LocalQueue& queue);
  void remove(const model::AdmissionCheck& check);

  WorkloadId upsert(model::Workload workload);  // a known UID with other facts is an update
  // One that holds quota already, as whoever decided before has written: it stays admitted, whatever the queue has now.
  // A ClusterQueue that is not known counts as deleted. A workload that is known stays as it is.
  WorkloadId restore(model::Workload workload, HeldQuota held);
  void finish(WorkloadId id);
  void remove(WorkloadId id);
  void released(WorkloadId id);  // an evicted workload has let go of what it held
  // What a check's controller says; nothing where the workload has no quota, or no such check.
  void check_state(WorkloadId id, const CheckReport& report, Time at);
  // Whether all pods are ready, or have succeeded, that it was admitted with; else it means nothing.
  void pods_ready(WorkloadId id, bool ready, Time at);
  WorkloadId find(const std::string& uid) const;   // invalid: none is known
  void places_changed();                           // nodes, or what stands there: who waits for a place looks again
  void offers_changed();                           // of nodes: for whom no room could be kept, it may be now
  void lost_kept(WorkloadId id);                   // some of the places that are kept for it are another's, or nobody's
  bool move_kept(WorkloadId id);                   // to places where it would start at once, if it may; false: it stays
  std::vector<WantsPlace> wanting_places() const;  // as of the last cycle, in their order
  std::vector<WantsPlace> wanting_from(WorkloadId head, size_t looks);  // one that gives way, and those behind it

  // Decides once about each queue's head. False: nothing is left that another cycle would change. `decisions`: empty.
  bool run_cycle(Time now, std::vector<AdmissionDecision>& decisions);
  std::optional<Time> next_due() const;  // when time alone changes something, so that a cycle is to be run then
  std::optional<Time> keeps_from() const { return kept_.next_due; }  // the same, of room for who has waited long

  std::optional<Term> term(WorkloadId id) const;          // while it is admitted
  std::optional<Time> expected_end(WorkloadId id) const;  // the same, where it declares how long it runs
  bool is_late(WorkloadId id) const;                      // it has what is kept for others, and should have ended
  // What `from` knows beside the facts: since when workloads wait, what is kept, who was evicted, what was used lately.
  void take_over(const Admission& from, Time now);
  const WorkloadStatus& status(WorkloadId id) const { return record(id).status; }
  WaitingFor explain(WorkloadId id) const;  // of now, for people: O(what waits in its queue and is held around it)
  bool waits_for_pods() const;              // nobody is let in before the pods of others are ready
  std::vector<PodOf> pods(WorkloadId id) const { return places_ ? places_->pods(id) : std::vector<PodOf>(); }
  QueueStatus queue_status(const std::string& cluster_queue) const { return queue_status(cluster_queue, overview()); }
  QueueStatus queue_status(const std::string& cluster_queue, const QueueOverview& overview) const;
  QueueOverview overview() const;  // as of the last cycle; a look at every workload
  const QuotaTree::Queues& cluster_queues() const { return queues_; }
  const Flavors& flavors() const { return flavors_; }
  const QuotaTree::Cohorts& cohorts() const { return cohorts_; }
  const std::map<std::string, model::AdmissionCheck, std::less<>>& checks() const { return checks_; }
  const std::map<std::pair<std::string, std::string>, model::LocalQueue>& local_queues() const { return local_queues_; }
  const Ledger& ledger() const { return *ledger_; }       // as of the last cycle
  const Spending& spending() const { return spending_; }  // the same
  const LocalUsage& usage() const { return usage_; }      // of LocalQueues whose ClusterQueue goes by it
  const Kept& kept() const { return kept_; }              // for who has waited long

 private:
  Record& record(WorkloadId id) { return records_[id.value]; }
  const Record& record(WorkloadId id) const { return records_[id.value]; }
  Claimant claimant(const Record& record) const;
  Holder holder_of(const Record& record) const;
  bool leaving(const Record& record) const;
  void begin_record(Record& record, const model::Workload& workload) const;
  bool is_counted_as_waiting(const Record& record) const;
  struct Explainer;  // admission_explain.cc

  // Configuration: admission_config.cc.
  void update_holder(const Record& record);
  void rebuild(std::vector<AdmissionDecision>& decisions);
  void rebuild_ledger();
  void drop_empty_queues();
  std::string inactive_reason(const model::ClusterQueue& queue) const;
  const model::LocalQueue* local_queue(const model::Workload& workload) const;
  void settle(WorkloadId id, std::vector<AdmissionDecision>& decisions);
  std::optional<EvictionReason> must_leave(const Record& record) const;
  void evict(WorkloadId id, EvictionReason why, std::vector<AdmissionDecision>& decisions);
  void vacate(WorkloadId id);
  void release_places(WorkloadId id);

  // Times: admission_times.cc.
  void wake_due();
  void schedule(WorkloadId id);
  std::optional<Time> deadline(const Record& record) const;
  std::optional<EvictionReason> overdue(const Record& record) const;
  std::optional<Time> not_ready_until(const Record& record) const;
  std::optional<EvictionReason> too_long_not_ready(const Record& record) const;
  bool backs_off(const Record& record) const;
  void count_usage(Record& record, bool restored);
  void end_usage(Record& record);
  void begin_term(Record& record);
  std::optional<Time> spared_until(const Record& record) const;
  void reactivate(Record& record);

  // Limits beside quota: admission_limits.cc. AdmissionChecks: admission_checks.cc.
  void count_spending();
  void charge(Record& record, Time since);
  std::optional<EvictionReason> spent_budget(const Record& record) const;
  std::string spent_budget_of(const model::LocalQueue& local) const;
  bool exceeds_user_limit(Entry& entry) const;
  std::string inactive_check(const model::ClusterQueue& queue) const;
  std::set<std::string> checks_of(const model::ClusterQueue& queue, const std::vector<PodSetAssignment>& given) const;
  bool provisions(const model::ClusterQueue& queue, const std::vector<PodSetAssignment>& given) const;
  bool provisions(const Entry& entry) const { return provisions(*entry.spec, entry.assignment.pod_sets); }
  void sync_checks(Record& record);
  std::optional<EvictionReason> failed_check(const Record& record) const;
  void find_place(Record& record);
  std::optional<EvictionReason> lost_place(const Record& record) const;
  void admit_if_ready(Record& record, std::vector<AdmissionDecision>& decisions);
  void leave(WorkloadId id);
  void enqueue(WorkloadId id);
  void park(WorkloadId id);
  void park_alike(const Record& head);
  void make_sticky(WorkloadId id);
  void hold_back(WorkloadId id, std::string reason, std::string message);
  void wake_tree(QuotaNode queue);

  struct Keeper;  // of room: admission_keeper.h. The cycle: admission_cycle.cc, admission_nominate.cc
  std::vector<Entry> heads();
  bool nominate(Entry& entry);
  bool keep_promise(Entry& entry, const Assignment& promised, const std::vector<Victim>& made_way);
  bool consider_fewer_pods(Entry& entry);
  void try_assignment(Entry& entry, const std::vector<int32_t>& counts);
  bool try_flavors(Entry& entry, const std::vector<int32_t>& counts, const PassedFlavors& without);
  PlaceRequest place_of(const Entry& entry) const;
  int round_of(const Entry& entry) const;
  void process(Entry& entry, SoFar& cycle, std::vector<AdmissionDecision>& decisions);
  void issue_preemptions(Entry& entry, std::vector<AdmissionDecision>& decisions);
  void reserve(Entry& entry, std::vector<AdmissionDecision>& decisions);
  WorkloadId head(const model::ClusterQueue& queue, const std::set<OrderKey>& pending) const;
  double local_usage(const model::ClusterQueue& queue, const model::Workload& workload) const;
  bool requeue(Entry& entry);

  AdmissionOptions options_;
  Places* places_;
  std::set<WorkloadId> want_place_;  // quota would let them in
  QuotaTree::Queues queues_;
  QuotaTree::Cohorts cohorts_;
  Flavors flavors_;
  std::map<std::string, model::AdmissionCheck, std::less<>> checks_;
  std::map<std::pair<std::string, std::string>, model::LocalQueue> local_queues_;
  std::map<std::string, model::Labels, std::less<>> namespaces_;
  std::set<std::string> going_;  // ClusterQueues that are deleted, with workloads that are admitted
  std::deque<Record> records_;   // by WorkloadId
  absl::flat_hash_map<std::string, WorkloadId> by_uid_;
  std::optional<Ledger> ledger_;
  // Grows with facts from outside, not with what follows of admissions. Who has been evicted in an epoch takes nothing
  // in it from those for whom others have been, so that policies which prefer each other's cannot go in circles.
  uint64_t epoch_ = 1;
  bool stale_ = true;                // the configuration is another than the ledger's
  std::vector<WorkloadId> touched_;  // to be put where they belong
  WaitingByQueue waiting_;
  std::set<WorkloadId> not_ready_;             // admitted, where that blocks others
  std::set<std::pair<Time, WorkloadId>> due_;  // Record::due of each that has one
  LocalUsage usage_;
  Spending spending_;
  bool charges_stale_ = false;  // other queues have budgets, or other workloads charges, than is counted
  Uncounted uncounted_;
  Kept kept_;
  Time now_;
};

}  // namespace berth::quota
