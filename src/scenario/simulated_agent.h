// SimulatedAgent: stands where an agent would on the simulated nodes that have the annotation berth.dev/devices. With
// dynamic MIG it keeps that true: who has which device, and how each is cut. Elsewhere it takes away who has ended.
//
// A pod that starts gets the whole devices that its bind names, and else the first with what it asks for, as kubelet
// would give it some; it makes way there for one that comes later and names them. What the manifest says of pods counts
// until such a pod ends. Owner thread; deterministic.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "api/cluster.h"
#include "mig/node_devices.h"
#include "model/devices.h"

namespace berth::scenario {

class SimulatedAgent {
 public:
  // The node has come, or is another now: it is as its annotation says.
  void put(const api::Node& node);
  void forget(const std::string& node) { nodes_.erase(node); }
  // With dynamic MIG.
  bool knows(const std::string& node) const { return nodes_.contains(node) && nodes_.at(node).model != nullptr; }

  // True if what is told of the node's devices is something else now.
  bool end(const std::string& node, const std::string& pod);
  // The same, before a pod starts that Berth has placed: where the manifest names it, it means an earlier one of its
  // name, which Berth does not know and which keeps what it has.
  bool set_apart(const std::string& node, const std::string& pod);
  // Of a node that it knows. `pod`: "namespace/name"; `asked`: all that it requests; `given`: UUIDs or numbers of
  // devices.
  void start(const std::string& node, const std::string& pod, const model::ResourceList& asked,
             const std::vector<std::string>& given);
  // Cuts the devices so. Sentences about those that are in use, or ill, and would change, or that cannot be cut so:
  // then it leaves all as they are.
  std::vector<std::string> cut(const std::string& node, std::span<const model::GpuDevice> wanted);
  // Somebody else has cut the node's devices so, in their order.
  void find_cut(const std::string& node, std::span<const mig::GpuDevice> cut);
  // The annotation's value now.
  std::string annotation(const std::string& node) const;

 private:
  struct Taken {
    std::string pod, resource;
    size_t device = 0;
    bool made_up = false;  // a whole device, and nobody has said that it is this one
  };
  struct Node {
    model::NodeDevices devices;
    const model::MigModel* model = nullptr;  // whose devices the agent cuts; none: it does not
    std::vector<Taken> taken;                // by pods that have started here, one by one
  };
  static bool has_one(const Node& node, size_t device, const std::string& resource);
  static void give_one(Node& node, const std::string& pod, const std::string& resource, std::span<const size_t> order,
                       size_t named);
  static std::vector<std::string> make_way(Node& node, std::span<const size_t> named);

  std::map<std::string, Node> nodes_;
};

}  // namespace berth::scenario
