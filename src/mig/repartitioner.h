// Repartitioner: chooses how nodes with dynamic MIG are cut, for pods that fit nowhere as things are.
//
// It stands beside the engine. After each cycle that has finished, or that holds a pod (CycleResult::held), it looks at
// the pods that wait and at the nodes that allow it (model::DynamicMig), and says which node is to be cut how; whoever
// drives both lets the engine know (NodeRepartitioning), has the node cut, and brings the node's new resources as ever.
// It says, too, when the node is done, has taken too long, or can never have it any more, as an agent tells that a
// device which was to be cut is in use or that others are healthy than were. The engine keeps GPU work off the node
// meanwhile. While a pod is held, nodes are cut only for those before it in the queue's order; it and those behind it
// get of these nodes, where they have no place on others as things are.
//
// Only idle devices are cut. Where an agent tells the devices of a node, these are the ones that it has given to
// nobody, provided that it has located every pod which the engine knows to use GPUs there: a bind on its way keeps all
// of them. Elsewhere counts are all that is known, and a node is cut while none of its GPU resources is in use. Pods
// take their turn in the queue's order, and each is tried on what is under way first, so that nothing is cut twice for
// the same pod, and there on what it was promised before; then on nodes that would have to be cut. A pod counts as
// served only if all filters of nodes let it in beside those before it. When a node is done, it is told to whom it was
// promised, since one of several that are cut in one plan may be all that some pod can have. So a node is cut only if
// some pod that waits gains from it, and not again before `interval` has passed; one that took too long is left alone
// for `retry`, which doubles.
//
// Of those that no idle device serves the first of each queue that have waited long have GPUs kept, one after the
// other: of the nodes that would serve them once others have left, those which are idle the soonest, by what is
// declared. They stay the same until they are cut, lost, or of no use any more, so that nobody waits longer than those
// run who are there.
//
// Owner thread only; deterministic. Cost: nothing while no node allows it, no pod with such a request waits, or nothing
// of both has changed since nothing could be done; else a unit of work for each pod served and for each class at each
// node that is of no use to it, and for each node that is promised what the plan of its geometry costs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/engine.h"
#include "mig/idle_devices.h"
#include "mig/node_devices.h"
#include "packing/mig_room.h"

namespace berth::mig {

struct RepartitionOptions {
  Duration timeout = Duration::seconds(600);  // a change that has not arrived by then is given up
  Duration interval = Duration::seconds(60);  // between the end of a change and the next one of that node
  Duration retry = Duration::seconds(600);  // after a change that was given up; doubles with each in a row, to 64-fold
  Duration again = Duration::seconds(1);    // after a change that was not begun after all
};

// What the plan of one node's geometry counts as, in units of a candidate that is looked at: where it is searched for,
// since some of its idle devices are cut already, and where none is.
inline constexpr int64_t kSearchUnits = 4000, kCutUnits = 100;

struct RepartitionStep {
  enum class Kind : uint8_t {
    kBegin,      // tell the engine that the node is being repartitioned, and have it cut so
    kArrived,    // the node has what was wanted: tell the engine that it is over
    kTimedOut,   // the same, but the node has not
    kOvertaken,  // the same, and it never will, as things have changed
    kKeep,       // tell the engine what is kept of the node for one who waits, if anything (engine::GpusKept)
  };
  Kind kind = Kind::kBegin;
  std::string node;
  std::vector<GpuDevice> devices;      // kBegin, by device, as wanted
  model::ResourceList resources;       // kBegin: as which they will be allocatable; kKeep: so much; nothing: no longer
  std::string config = {};             // kBegin, where NVIDIA's MIG manager cuts: the name of the configuration
  std::string why = {};                // kOvertaken
  std::vector<std::string> pods = {};  // kArrived: whom it was promised to, by UID
  std::string owner = {};              // kKeep: for whom, by UID
};

// What is known of a node that is being cut, or has been.
struct RepartitionRecord {
  bool under_way = false;
  model::ResourceList wanted;                  // of the last change
  Time until;                                  // under way: when it is given up; else: not before
  int given_up = 0;                            // in a row
  std::vector<model::GpuDevice> devices = {};  // under way, where an agent cuts: what is to lie on each, by UUID
};

class Repartitioner {
 public:
  explicit Repartitioner(RepartitionOptions options = {}) : options_(options) {}

  // What is to be done now, by node; the engine's last cycle has finished, or holds a pod. Its events are applied
  // before the next call. Plans until `work` units are used up, but for one node at least, so that calls come to an
  // end.
  std::vector<RepartitionStep> step(const engine::Engine& engine, Time now, int64_t work = INT64_MAX);
  // The last step() has used so much, and would have found more to do with more of it.
  int64_t work_used() const { return work_used_; }
  bool unfinished() const { return unfinished_; }
  // When time alone could change what step() says.
  std::optional<Time> wakeup() const { return wakeup_; }

  // What another has known of a node: somebody has cut it, or has begun to, before this object was there. False where
  // as much is known already. The engine must hear if it is under way.
  bool restore(const std::string& node, const RepartitionRecord& record);
  // The node is gone.
  void forget(const std::string& node) {
    nodes_.erase(node);
    take_promised(node);
  }
  // A change that step() has begun, or that was restored: it has failed, and is given up; or it was never begun, and
  // may be tried again soon. The engine must hear that it is over.
  void fail(const std::string& node, Time now);
  void withdraw(const std::string& node, Time now);
  // Null where nothing is known.
  const RepartitionRecord* find(const std::string& node) const;
  const RepartitionOptions& options() const { return options_; }
  // Which devices could be cut now, whether or not a pod waits for it.
  IdleDevices& idle_devices() { return idle_; }

 private:
  struct Offer;
  class Plan;

  void end_changes(const engine::State& state, Time now, std::vector<RepartitionStep>& steps);
  std::set<std::string> candidates(const engine::State& state) const;
  std::optional<Offer> offer_of(const engine::State& state, const std::string& name, Time now);
  std::vector<Offer> offers(const engine::State& state, Time now);
  void begin(const engine::State& state, std::vector<Offer>& offers, Time now, std::vector<RepartitionStep>& steps);
  std::vector<std::string> take_promised(const std::string& node);
  static std::vector<uint64_t> who_waits(const engine::Engine& engine);
  void plan(const engine::Engine& engine, std::vector<Offer>& offers, int64_t work);
  void promise_again(const engine::Engine& engine, Time now, int64_t work);
  bool nothing_new(const engine::Engine& engine, Time now);

  // What is kept of nodes that are in use: repartition_keep.cc.
  struct Due;
  struct Later;
  static std::vector<Due> all_due(const engine::Engine& engine, const engine::DuePods& pods);
  std::optional<Later> later(const engine::Engine& engine, engine::NodeSlot slot, Time now);
  using Keeps = std::map<std::string, RepartitionStep>;  // by node
  bool keep_for(const engine::Engine& engine, const Due& due, std::span<const Later* const> nodes, Keeps& keeps);
  void keep_gpus(const engine::Engine& engine, Time now, std::vector<RepartitionStep>& steps);
  void find_wakeup(Time now);

  RepartitionOptions options_;
  packing::MigDemand demand_;
  std::map<std::string, RepartitionRecord> nodes_;  // that have been cut
  IdleDevices idle_;
  std::map<std::string, std::string> promised_;           // pods by UID, and the nodes under way that they are to have
  std::map<std::string, RepartitionStep> promised_work_;  // kKeep, for nodes under way, once they are cut
  std::map<std::string, RepartitionStep> beside_;       // the same while they are: what is asked for beside their GPUs
  std::set<std::string> served_;                        // pods and workloads by UID, by the last plan
  std::map<std::string, model::ResourceList> kept_as_;  // nodes of which GPUs are kept: as they were cut then
  // What is kept changes so often in so long; then it stays as it is for the rest of that.
  static constexpr int kKeepsMax = 32;
  static constexpr Duration kKeepsSpan = Duration::seconds(1);
  int keeps_ = 0;
  Time keeps_since_{INT64_MIN / 2};
  std::vector<uint64_t> looked_at_;  // what the last plan, in which nothing was to be done, saw
  std::vector<uint64_t> waiting_;    // who waited when the last was made
  std::optional<Time> wakeup_;
  int64_t work_used_ = 0;
  bool unfinished_ = false;
};

}  // namespace berth::mig
