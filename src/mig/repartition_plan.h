// Repartitioner::Plan: gives each pod that waits its turn, in the queue's order, and promises it a node.
//
// Workloads that wait in queues for nothing but a place (engine/wanted_places.h) have their turns among the pods, with
// all of their pods or none, as far as quota allows them beside those before them.
//
// Private to repartitioner.cc. What a node is promised for only grows, and so does what is refused: a class that a node
// is of no use to does not look at it again, and neither does any class that asks for the same once the geometry has
// no room for that. While pods are promised nodes, only whether these could be cut so is asked, which is quick; how
// they are is decided once, when all have had their turn, and shared by nodes that are alike and promised alike.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/promised_peers.h"
#include "engine/queued_workloads.h"
#include "engine/wanted_places.h"
#include "mig/repartitioner.h"
#include "quota/admission.h"

namespace berth::mig {

// What the class asks for of is_cut_resource(); a share of a GPU, a whole one.
model::ResourceList cut_requests(const engine::State& state, const engine::PodClass& cls);
// What else it asks for.
model::ResourceList other_requests(const engine::State& state, const engine::PodClass& cls);

// A node that is being cut, or could be, with the pods that it has been promised to.
struct Repartitioner::Offer {
  std::string name;
  engine::NodeSlot slot;
  std::string shape;                      // the same for nodes whose GPUs are alike, and cut alike
  std::optional<engine::NodeState> node;  // as it would be; made when it is first needed
  bool under_way = false;
  bool named = false;
  std::vector<GpuDevice> before, devices;
  std::string config;                         // named: of `devices`
  model::ResourceList needs;                  // of those pods
  model::ResourceList beyond;                 // what of it the devices that are cut have to give
  model::ResourceList idle;                   // what the idle devices are advertised as
  model::ResourceList spare;                  // free on devices that stay as they are
  model::ResourceList wanted;                 // under way: what it will have; else: what it has
  std::vector<bool> full_for;                 // by request: the geometry has no room for one more
  std::vector<engine::PodSlot> kept;          // who may be looked through, as kept_room() is, and `node` is without
  std::optional<engine::QueueRank> kept_for;  // for whom room is kept there: the first
  quota::WorkloadId workload;                 // the first that it has been promised to
  model::ResourceList for_workload;           // what of it
};

class Repartitioner::Plan {
 public:
  // All outlive it.
  Plan(const engine::Engine& engine, std::vector<Offer>& offers, packing::MigDemand& demand,
       const std::map<std::string, std::string>& promised_before, int64_t work);

  // Promises, then chooses the devices of each node that has been promised.
  void run();
  // Promises to one alone; false: it cannot have what it asks for of these.
  bool promise_only(engine::PodSlot pod);
  bool promise_only(const engine::WantedPlaces& wanted);
  int64_t work_used() const { return work_used_; }
  bool unfinished() const { return unfinished_; }
  // Of pods that are in no queue of workloads: which node each has been promised.
  const std::map<engine::PodSlot, const Offer*>& places() const { return places_; }
  const std::vector<quota::WorkloadId>& workloads() const { return workloads_; }  // that have been promised some

 private:
  using Pods = absl::btree_set<engine::PodSlot, engine::QueueOrder>;
  struct Asker {
    engine::ClassId cls;
    size_t request = 0;            // which of the different requests it has; kNothing: none
    bool has_place_as_is = false;  // perhaps: it is one of several pods that need places together
  };
  static constexpr size_t kNothing = SIZE_MAX;
  // A waiting class, the first of its pods that has not had its turn, and the first node that may be of use to it, of
  // all and of those that are promised to somebody; or workloads that are alike, and the first of these.
  struct Turn {
    Asker asker;
    Pods::const_iterator next, end;
    size_t offer = 0, promised = 0;
    const engine::WantedPlaces* wanted = nullptr;
    size_t workload = 0;
    int borrowing() const { return wanted->options.empty() ? 0 : wanted->options.front().given.borrowing; }
  };
  using Turns = std::map<engine::QueueRank, Turn>;

  engine::QueueRank rank_of(engine::PodSlot pod) const { return engine::queue_rank(state_.pod(pod).pod); }
  std::optional<engine::QueueRank> held_rank() const;
  size_t request_of(engine::ClassId cls);
  Turns all_turns();
  void add(engine::ClassId cls, Pods::const_iterator first, Pods::const_iterator end, Turns& turns);
  static Turns::iterator first_turn(Turns& turns, const std::optional<engine::QueueRank>& held);
  void promise();
  Offer* promise_again(const Turn& turn);
  Offer* promise_one(Turn& turn);
  engine::DomainId roomiest(const Turn& turn);
  bool serve(const Asker& asker, engine::PodSlot pod, Offer& offer);
  bool can_share() const;
  bool stands(const Asker& asker, engine::PodSlot pod);
  bool stands_on(const Asker& asker, engine::PodSlot pod, engine::NodeSlot node);
  static bool is_to_be_cut(const Offer& offer) { return offer.under_way || !offer.needs.empty(); }
  bool may_have(const Asker& asker, const engine::NodeState& node, engine::NodeSlot slot);
  bool is_kept_from_it(const Offer& offer) const { return offer.kept_for && (!turn_ || *offer.kept_for < *turn_); }
  bool shares_with_others(const engine::PodClass& cls, const Offer& offer) const;
  bool cut(const Asker& asker, Offer& offer);
  bool leaves_whole(const Offer& offer, const model::ResourceList& beyond) const;
  void gather();
  bool move_pods(Offer& from);
  void choose_devices();
  void occupy(const engine::PodClass& cls, engine::NodeState& node) const;
  void leave_out(engine::PodSlot pod);
  engine::NodeState imagined(const Offer& offer) const;

  // Workloads: repartition_workloads.cc.
  struct Mark {
    size_t offers = 0, standing = 0, left_out = 0;
    engine::PromisedPeers peers;
  };
  void add_workloads(Turns& turns);
  bool promise_workload(Turn& turn);
  bool promise_all(const engine::WantedPlaces::Option& option, const std::vector<engine::PodSlot>& kept);
  bool promise_set(const engine::WantedPlaces::Set& set);
  bool promise_set_in(const engine::WantedPlaces::Set& set, const Asker& asker, engine::DomainId within);
  bool place_as_is(const Asker& asker, engine::PodSlot pod, engine::NodeSlot node);
  Offer* offer_of(engine::NodeSlot node);
  Mark mark() const { return {changed_offers_.size(), changed_standing_.size(), changed_left_out_.size(), peers_}; }
  void roll_back(const Mark& mark);

  const engine::Engine& engine_;
  const engine::State& state_;
  std::vector<Offer>& offers_;
  std::vector<Offer*> promised_;                                               // that are to be cut, as they came to be
  std::map<Offer*, std::vector<std::pair<Asker, engine::PodSlot>>> promises_;  // of those that may be without them
  const std::map<std::string, std::string>& promised_before_;                  // by UID: names of nodes under way
  std::map<engine::PodSlot, const Offer*> places_;
  std::vector<quota::WorkloadId> workloads_;
  quota::WorkloadId workload_;  // whose turn it is
  engine::PromisedPeers peers_;
  packing::MigDemand& demand_;
  const int64_t work_;
  int64_t work_used_ = 0;
  bool unfinished_ = false;
  bool late_ = false;                      // the turn is that of the one that is held, or of those behind it
  bool gathers_ = false;                   // nothing more is cut
  std::optional<engine::QueueRank> turn_;  // whose turn it is; none: that of all to whom nodes are promised
  std::vector<model::ResourceList> requests_;
  std::map<std::string, size_t> known_requests_;
  bool all_or_none_ = false;                              // what is promised may have to be undone
  bool spares_offers_ = false;                            // places that are there are those on other nodes
  std::vector<std::pair<Offer*, Offer>> changed_offers_;  // the same: as they were
  std::vector<std::pair<engine::NodeSlot, engine::NodeState>> changed_standing_;
  std::set<engine::PodSlot> left_out_;  // peers_, and the nodes in standing_, are without these
  std::vector<engine::PodSlot> changed_left_out_;
  std::map<engine::NodeSlot, engine::NodeState> standing_;  // that are not offers, with whom they were promised to
  std::vector<engine::NodeSlot> gpu_nodes_;
  std::map<engine::ClassId, size_t> standing_from_;  // the first of these that may be of use as it is
  std::map<engine::NodeSlot, Offer*> by_node_;
  std::optional<quota::QuotaTree> quota_;      // with what was promised
  std::set<quota::QuotaNode> promised_quota_;  // roots of what was
  std::deque<Pods> reserved_;                  // each a pod that a node is kept for, which may have another one sooner
};

}  // namespace berth::mig
