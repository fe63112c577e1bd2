// Repartitioner: chooses how nodes with dynamic MIG are cut, for pods that fit nowhere as things are.
//
// It stands beside the engine. After each cycle that has finished it looks at the pods that wait and at the nodes that
// allow it (model::DynamicMig), and says which node is to be cut how; whoever drives both lets the engine know
// (NodeRepartitioning), has the node cut, and brings the node's new resources as ever. It says, too, when the node is
// done, or has taken too long. The engine keeps GPU work off the node meanwhile.
//
// Only a node none of whose GPU resources is in use is cut: what is known of a node are counts, and NVIDIA's MIG
// manager clears the whole of it. Pods take their turn in the queue's order, and each is tried on what is under way
// first, so that nothing is cut twice for the same pod; then on nodes that would have to be cut. A pod counts as served
// only if all filters of nodes let it in beside those before it. So a node is cut only if some pod that waits gains
// from it, and not again before `interval` has passed; one that took too long is left alone for `retry`, which doubles.
//
// Owner thread only; deterministic. Cost: nothing while no node allows it or no pod with such a request waits; else
// what waits by class, and for each pod served a few plans of one node's geometry, of which kCutsMax at most are made
// at a time.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/engine.h"
#include "mig/node_devices.h"
#include "packing/mig_room.h"

namespace berth::mig {

struct RepartitionOptions {
  Duration timeout = Duration::seconds(600);  // a change that has not arrived by then is given up
  Duration interval = Duration::seconds(60);  // between the end of a change and the next one of that node
  Duration retry = Duration::seconds(600);  // after a change that was given up; doubles with each in a row, to 64-fold
};

// Plans of a node's geometry in one step(), at most.
inline constexpr int kCutsMax = 500;

struct RepartitionStep {
  enum class Kind : uint8_t {
    kBegin,     // tell the engine that the node is being repartitioned, and have it cut so
    kArrived,   // the node has what was wanted: tell the engine that it is over
    kTimedOut,  // the same, but the node has not
  };
  Kind kind = Kind::kBegin;
  std::string node;
  std::vector<GpuDevice> devices;  // by device, as wanted
  model::ResourceList resources;   // as which they will be advertised
};

class Repartitioner {
 public:
  explicit Repartitioner(RepartitionOptions options = {}) : options_(options) {}

  // What is to be done now, by node; the engine's last cycle has finished. Its events are applied before the next call.
  std::vector<RepartitionStep> step(const engine::Engine& engine, Time now);
  // When time alone could change what step() says.
  std::optional<Time> wakeup() const { return wakeup_; }

 private:
  struct NodeRecord {
    bool under_way = false;
    model::ResourceList wanted;  // of the last change
    Time until;                  // under way: when it is given up; else: not before
    int given_up = 0;            // in a row
  };
  struct Offer;

  void end_changes(const engine::State& state, Time now, std::vector<RepartitionStep>& steps);
  std::vector<Offer> offers(const engine::State& state, Time now);
  bool serve(const engine::Engine& engine, const engine::PodClass& cls, Offer& offer, int& cuts_left);
  void plan(const engine::Engine& engine, std::vector<Offer>& offers);
  void find_wakeup(Time now);

  RepartitionOptions options_;
  packing::MigDemand demand_;
  std::map<std::string, NodeRecord> nodes_;              // that have been cut
  std::map<std::string, std::vector<GpuDevice>> known_;  // devices_of() by shape of the node; empty: refused
  std::set<std::string> refused_;                        // shapes, and what cannot be cut of them
  std::optional<Time> wakeup_;
};

}  // namespace berth::mig
