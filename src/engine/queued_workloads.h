// QueuedWorkloads: the workloads of queues in the engine, and the places that are kept for their pods.
//
// Quota is decided in src/quota, which asks here whether nodes have room for all pods of a workload, and here they are
// kept: for each pod that has not come yet a stand-in, a pod of the engine's own, is charged to the node. It has the
// pod set's spec with the node labels and tolerations of its flavors. A pod of the workload that comes is nominated for
// a stand-in's node and the stand-in goes; when such a pod goes and the workload still needs one, a stand-in comes
// back: on the same node, else wherever there is room by then.
//
// Invariants: 1. a workload that is admitted, or has its place and waits for its checks, has as many pods and stand-ins
// as it needs, but for those whose node was lost and that have found no other; 2. a pod of a workload that is not
// admitted, or that it has no need of, is not scheduled, nor one of a workload that lacks places and has not begun:
// that is evicted; 3. while a workload waits for others to leave, its stand-ins keep what these give back. Owner thread
// only.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/event.h"
#include "engine/place_search.h"
#include "engine/pod_owners.h"
#include "engine/wanted_places.h"
#include "engine/workload_group.h"
#include "quota/admission.h"

namespace berth::engine {

class QueuedWorkloads : public quota::Places {
 public:
  QueuedWorkloads(const PlacementContext& context, quota::AdmissionOptions options, PodTimes times)
      : context_(context), stand_ins_(context), admission_(std::move(options), this), times_(std::move(times)) {}

  // To be configured; what is changed takes effect with the next run().
  quota::Admission& configure() {
    in_use_ = changed_ = true;
    return admission_;
  }
  void set_namespace_labels(const std::string& name, const model::Labels& labels);
  void rehearse() { rehearses_ = true; }  // nobody makes pods: who is evicted has its places until it has let go
  void victims_changed();                 // others may be evicted than before
  void node_changed(NodeSlot node, bool offers_more);  // or something else than before
  void kept_for_pod(PodSlot pod, NodeSlot node);  // what is kept there for those after it is not theirs alone any more
  std::vector<PodSlot> standing(quota::WorkloadId id, bool pods) const;  // its stand-ins; `pods`: and its pods
  std::vector<quota::WorkloadId> who_may_move() const;  // with places that are kept, as they wait; there may be others
  // Of those, who come before the pod, have their turn: what they could have at once is kept for them.
  void move_kept(std::span<const quota::WorkloadId>& left, PodSlot pod, WorkBudget& work);
  void look_again() { seen_until_ = filled_at_ = UINT64_MAX; }  // for places: what nodes offer changed, and no node did
  const quota::Admission& admission() const { return admission_; }
  std::vector<quota::WorkloadId> all() const;                            // in their order
  std::optional<quota::WorkloadId> find(const std::string& name) const;  // by "namespace/name"

  void upsert(model::Workload&& workload);
  // One that had been admitted. In each cycle before others are placed: restore_places() notes which places it has,
  // once flavors are known; fill_short() finds those that are lacking, once the pods that have a node have met.
  void restore(WorkloadAdmitted&& event);
  void restore_places();
  void fill_short();
  // Stand-ins on nodes that changed and would not have them any more lose their place; pods that have taken one there
  // over, and whose workload has not begun, are to give it back before.
  std::vector<PodSlot> unsure() const;
  void leave_unfit();
  std::optional<Time> next_due() const;  // places are given up then that are kept for pods which do not come
  void end(const std::string& uid, bool deleted);
  void released(const std::string& uid);
  void pods_ready(const WorkloadPodsReady& event);
  void check_reported(const WorkloadCheckReported& event);

  // A pod that names a workload is there; known by now, it meets this. The node that was kept for it, where the place
  // is free now, or none.
  void know(PodSlot pod);
  NodeSlot meet(PodSlot pod);
  // It goes, or gives up the place that it met; afterwards, when its room is free, refill() is told where it stood
  // (invalid: it had no place to keep).
  void part(PodSlot pod);
  void give_up_place(PodSlot pod);
  void refill(const std::string& workload, NodeSlot node);
  void give_back_kept(NodeSlot node);  // it is to be cut anew: for whom room is kept there gives back all that is
  bool admits(const std::string& workload) const;  // so that places are kept for its pods
  // Whether the pod takes no place but that which is kept for it: one of a slice, or of a workload that has not begun.
  bool keeps_to_place(const model::Pod& pod) const;
  bool may_begin(const std::string& workload) const;  // its pods have places: it has them all, or has begun
  bool holds_back(const model::Pod& pod) const;       // it has to wait for its workload to be admitted
  std::string why_held_back(const model::Pod& pod) const;
  std::set<std::string> take_freed() { return std::exchange(freed_, {}); }
  const std::set<std::string>* pods_of(const std::string& workload) const;
  std::vector<PodSlot> own_pods(quota::WorkloadId id) const;
  PodOwners& owners() { return owners_; }

  // Decides about the heads of all queues until nothing changes. False: out of work, or pods may have what was let go.
  bool run(Time now, WorkBudget& work, std::vector<quota::AdmissionDecision>& decisions);

  // Who wants GPUs, where nodes could be cut anew, by the last run() that came to its end. Some may have gone since.
  const std::vector<WantedPlaces>& wanted() const { return wanted_; }
  // Where that run() ended before the workload was given its place, which one before it may have cut; else invalid.
  quota::WorkloadId held() const { return held_; }

  // Adds a sentence for each place that is kept for nobody, or twice, and each that is wanted and not looked for.
  void check(std::vector<std::string>& broken) const;

  quota::Leave may_leave(quota::WorkloadId id) override;
  bool fit(const quota::PlaceRequest& request, const std::vector<quota::WorkloadId>& gone, std::string* why) override;
  std::vector<quota::WorkloadId> in_the_way(const quota::PlaceRequest& request,
                                            const std::vector<quota::WorkloadId>& gone) override;
  bool hold(const quota::PlaceRequest& request, const std::vector<quota::WorkloadId>& gone) override;
  bool gives_way(const quota::PlaceRequest& request, const std::set<quota::WorkloadId>& placeless) override;
  quota::CouldFit could_fit(const quota::PlaceRequest& request) override;
  std::optional<Time> keep(const quota::PlaceRequest& request, Time from) override { return keep(request, from, {}); }
  std::optional<Time> keep_some(const quota::PlaceRequest& request, Time from) override;
  bool move_kept(const quota::PlaceRequest& request) override;
  bool waits_for_who_runs_on(quota::WorkloadId id) const override;
  bool waits_for_cut(quota::WorkloadId id) const override;
  std::vector<std::string> kept_nodes(quota::WorkloadId id) const override;
  bool may_lose_kept(quota::WorkloadId id) const override;
  const std::set<quota::WorkloadId>& lacking() const override { return short_; }
  bool has_begun(quota::WorkloadId id) const override;
  std::vector<quota::PodOf> pods(quota::WorkloadId id) const override;
  void release(quota::WorkloadId id) override;

 private:
  using Found = PlaceSearch::Place;
  using Group = WorkloadGroup;
  using Set = Group::Set;
  bool has_slices(const model::Pod& pod) const;
  static PodLooks looks_of(const quota::PlaceRequest& request, size_t set);
  static std::vector<Group::Member> members_of(const quota::PlaceRequest& request, size_t set);
  NodeSlot best_node(const model::Workload& workload, size_t set, const PodLooks& looks);
  // Those that could have pods of the set, until there is room for enough; `if_cut`: also if GPUs were cut for them.
  std::vector<Host> hosts(const model::Workload& workload, size_t set, const PodLooks& looks,
                          int64_t enough = INT64_MAX, bool if_cut = false);
  bool could_fit(const quota::PlaceRequest& request, bool if_cut);
  bool fits_on(const model::Workload& workload, size_t set, const PodLooks& looks, NodeSlot node);
  std::string why_not(const quota::PlaceRequest& request, const std::vector<PlaceSearch::Set>& sets,
                      const PlaceSearch::Failure& failure);
  PlaceSearch::Set lacking(quota::WorkloadId id, const model::PodSet& pods, size_t set, PodLooks looks, int32_t wanted,
                           bool stand_ins_stay) const;
  void add_lacking(const quota::PlaceRequest& request, size_t set, std::vector<PlaceSearch::Set>& out);
  std::string no_node_has_it(const quota::PlaceRequest& request, size_t set) const;
  bool find(const quota::PlaceRequest& request, const std::vector<PodSlot>& gone, std::vector<Found>& found,
            std::string* why, bool partly = false);
  std::vector<PodSlot> kept_for_later(const model::Workload& workload) const;
  void take_places(const quota::PlaceRequest& request, const std::vector<Found>& found, PodPhase phase);
  std::vector<PodSlot> standing(const std::vector<quota::WorkloadId>& all) const;
  struct Leaver;
  std::vector<Leaver> leavers(const quota::PlaceRequest& request);
  std::optional<Time> keep(const quota::PlaceRequest& request, Time from, std::optional<size_t> pods);
  void keep_in(const quota::PlaceRequest& request, const std::vector<Found>& found, Time free_by);
  bool let_go(quota::WorkloadId id);
  void add_stand_in(Group& group, const model::Workload& workload, size_t set, NodeSlot node, PodPhase phase,
                    int32_t number = -1);
  void drop_stand_in(Set& set, size_t at);
  void name_members(const quota::PlaceRequest& request, Group& group, size_t set);
  void trim(quota::WorkloadId id);
  bool could_have_kept(quota::WorkloadId id);
  void fill_slices(quota::WorkloadId id, size_t set);
  void await_next(quota::WorkloadId id, Group& group);
  bool give_up_awaited();
  int agreement(const PlaceSearch::Set& set, const model::PodSet& pods, int32_t number, NodeSlot node) const;
  std::optional<int32_t> number_at(quota::WorkloadId id, size_t set, NodeSlot node) const;
  std::optional<int32_t> number_for(quota::WorkloadId id, size_t set, const model::Pod& pod) const;
  Group* keeps_places(const std::string& workload);
  bool comes_before(quota::WorkloadId a, quota::WorkloadId b) const;  // wanted_places.cc
  void begin_asking();
  std::vector<PodSlot> first_blocked() const;
  WantedPlaces::Option wanted_option(const quota::PlaceRequest& request, const quota::PlaceOption& given);
  void note_wanted();
  void follow(const quota::AdmissionDecision& decision);

  PlacementContext context_;
  StandIns stand_ins_;
  quota::Admission admission_;
  const PodTimes times_;
  absl::btree_map<quota::WorkloadId, Group> groups_;
  absl::btree_map<std::string, quota::WorkloadId> by_name_;       // "namespace/name"
  absl::flat_hash_map<std::string, std::set<std::string>> pods_;  // by workload: UIDs of the pods that name it
  PodOwners owners_;
  std::set<std::string> freed_;
  std::set<quota::WorkloadId> short_;             // admitted, with fewer places than they want
  std::set<quota::WorkloadId> awaiting_, taken_;  // with Group::awaits_since, and others; given places in this run
  std::set<NodeSlot> changed_nodes_;              // since the last run
  std::vector<std::pair<quota::WorkloadId, std::optional<bool>>> restored_;  // with HeldQuota::ran
  std::vector<WantedPlaces> wanted_;
  std::set<quota::WorkloadId> asking_, asked_;  // those that others were held for, in this run and before
  std::set<PodSlot> asking_pods_, asked_pods_;  // the same, of pods
  quota::WorkloadId held_;
  bool in_use_ = false, rehearses_ = false;                            // something is known of queues or workloads
  bool gave_back_ = false, changed_ = false, offers_changed_ = false;  // some let go of places; admission is to look;
  bool lets_go_ = false, goes_on_ = false;   // places from before this run were let go of; it is not over for that
  uint64_t seen_until_ = 0, filled_at_ = 0;  // of the change log when heads, and places, were last looked at
  int64_t used_ = 0;                         // work units since the last run began
  Time now_;
};

}  // namespace berth::engine
