// Repartitioner::Plan: gives each pod that waits its turn, in the queue's order, and promises it a node.
//
// Private to repartitioner.cc. What a node is promised for only grows, and so does what is refused: a class that a node
// is of no use to does not look at it again, and neither does any class that asks for the same once the geometry has
// no room for that. While pods are promised nodes, only whether these could be cut so is asked, which is quick; how
// they are is decided once, when all have had their turn, and shared by nodes that are alike and promised alike.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/promised_peers.h"
#include "mig/repartitioner.h"

namespace berth::mig {

// What the class asks for of is_cut_resource(); a share of a GPU, a whole one.
model::ResourceList cut_requests(const engine::State& state, const engine::PodClass& cls);

// A node that is being cut, or could be, with the pods that it has been promised to.
struct Repartitioner::Offer {
  std::string name;
  engine::NodeSlot slot;
  std::string shape;                      // the same for nodes whose GPUs are alike, and cut alike
  std::optional<engine::NodeState> node;  // as it would be; made when it is first needed
  bool under_way = false;
  bool named = false;
  std::vector<GpuDevice> before, devices;
  std::string config;          // named: of `devices`
  model::ResourceList needs;   // of those pods
  model::ResourceList beyond;  // what of it the devices that are cut have to give
  model::ResourceList idle;    // what the idle devices are advertised as
  model::ResourceList spare;   // free on devices that stay as they are
  model::ResourceList wanted;  // under way: what it will have; else: what it has
  std::vector<bool> full_for;  // by request: the geometry has no room for one more
};

class Repartitioner::Plan {
 public:
  // All outlive it.
  Plan(const engine::Engine& engine, std::vector<Offer>& offers, packing::MigDemand& demand, int64_t work);

  // Promises, then chooses the devices of each node that has been promised.
  void run();
  int64_t work_used() const { return work_used_; }
  bool unfinished() const { return unfinished_; }

 private:
  using Pods = absl::btree_set<engine::PodSlot, engine::QueueOrder>;
  // A waiting class, the first of its pods that has not had its turn, and the first node that may be of use to it.
  struct Turn {
    engine::ClassId cls;
    Pods::const_iterator next, end;
    size_t offer = 0;
    size_t request = 0;  // which of the different requests it has
  };

  void promise();
  const Offer* promise_one(Turn& turn);
  engine::DomainId roomiest(const Turn& turn);
  bool serve(const Turn& turn, engine::PodSlot pod, Offer& offer);
  bool shares_with_others(const engine::PodClass& cls, const Offer& offer) const;
  bool cut(const Turn& turn, Offer& offer);
  bool leaves_whole(const Offer& offer, const model::ResourceList& beyond) const;
  void choose_devices();
  void occupy(const engine::PodClass& cls, Offer& offer) const;
  engine::NodeState imagined(const Offer& offer) const;

  const engine::Engine& engine_;
  const engine::State& state_;
  std::vector<Offer>& offers_;
  engine::PromisedPeers peers_;
  packing::MigDemand& demand_;
  const int64_t work_;
  int64_t work_used_ = 0;
  bool unfinished_ = false;
  bool late_ = false;  // the turn is that of pods behind one that is held
  std::vector<model::ResourceList> requests_;
  std::deque<Pods> reserved_;  // each a pod that a node is kept for, which may have another one sooner
};

}  // namespace berth::mig
