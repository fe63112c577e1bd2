// NodeState: one node as the engine accounts for it.
//
// The generation grows with every change, of the object or of what runs there, so that whoever remembers a node's
// generation knows whether its own conclusion still holds. A node that pods name but that no event has brought is kept
// as a placeholder (present == false): its use is counted the moment it appears.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "engine/ids.h"
#include "engine/node_catalog.h"
#include "engine/pod_class.h"
#include "engine/promises.h"
#include "engine/request_mix.h"
#include "engine/resource_table.h"
#include "engine/shared_devices.h"
#include "engine/topology.h"
#include "model/node.h"
#include "model/pod.h"

namespace berth::engine {
struct ClaimRecord;
class VolumeState;
}  // namespace berth::engine

namespace berth::engine {

struct NodeState {
  model::Node node;
  bool present = false;
  bool in_use = false;               // the slot is taken
  bool has_gpus = false;             // some GPU resource, be it one that is not allocatable now
  bool repartitioning = false;       // Berth has its GPUs cut anew
  uint32_t pool = 0;                 // NodeCatalog::pool_of its labels
  int64_t gpu_price_ppm = 0;         // NodeCatalog::gpu_price_ppm of its labels
  uint32_t generation = 0;           // never goes back, not even when the slot is reused
  uint64_t order = 0;                // sorts like the name among all nodes
  std::vector<int64_t> allocatable;  // by ResourceId; shorter than the table when the node lacks the later ones
  // Sums over its pods: of their requests by ResourceId, and of PodClass::scored_*. Wide, because any number of pods
  // that name the node themselves may ask for any amount.
  std::vector<Int128> used;
  Promises promises;  // part of `used`
  Int128 scored_cpu_millis = 0;
  Int128 scored_memory_bytes = 0;
  SharedDevices devices;      // that pods share, where the node has GpuSharing::kDevices
  ListedDevices listed;       // of node.devices
  uint32_t guesses = 0;       // pods whose devices are guessed
  uint32_t on_gone = 0;       // pods that share a device which is not there any more
  bool guesses_stay = false;  // engine/node_guesses.h
  // Pods of which kubelet has said that they ended here, and which the agent may list still: they have no devices.
  std::set<std::string> ended;
  // MIG instances that the agent says are given to pods that the engine does not know on the node; sorted.
  std::vector<std::pair<ResourceId, int64_t>> stranger_instances;
  ResourceId share_resource;  // of model::NodeGpus::resource
  std::vector<model::HostPort> host_ports;
  std::vector<PodSlot> pods;  // unordered
  uint32_t working_pods = 0;  // those that are no daemons
  NodeDomains domains;        // of the topology keys in use; none while not present
  // How many of its pods each selector sees, for those that count by node; sorted.
  std::vector<std::pair<SelectorId, int32_t>> seen_by;
  std::vector<std::pair<ClaimRecord*, uint32_t>> claims;  // that its pods use, and by how many; unordered

  // The agent says that a pod of this name has one of the devices.
  bool lists(const std::string& pod) const {
    return std::ranges::any_of(node.devices.devices, [&](const model::GpuDevice& device) {
      return std::ranges::find(device.pods, pod) != device.pods.end();
    });
  }

  // Its GPUs are being cut anew, by whomever, and what it says of them holds no more.
  bool is_being_cut() const { return repartitioning || node.cut_by_others; }

  // The listed devices that go best together of those that a pod of the class could have now; empty where it cannot, or
  // asks for none.
  model::DeviceSet best_devices(const PodClass& cls) const {
    if (!listed || !cls.requests_gpu) return 0;
    const int64_t count = std::min<int64_t>(cls.request(share_resource), model::kNodeDevicesMax + 1);
    return listed.topology().choose(listed.free(devices.open()), static_cast<int>(count));
  }

  // The device on which a share of so many units goes of those that are shared already; -1: none has the room, or may
  // take more beside what is promised.
  int32_t best_shared(int64_t units) const { return best_shared(units, devices); }
  int32_t best_shared(int64_t units, const SharedDevices& shared) const;
  // How much is free on the one of them with the most room; -1: none takes more.
  int64_t most_shared() const;

  // How many replicas of its GPUs a share takes here beyond those that the pod asks for itself.
  int64_t replicas_beside_requests(const PodClass& cls) const {
    return std::max<int64_t>(0, node.gpus.replicas_of(cls.spec->gpu_share) - cls.request(share_resource));
  }

  // Whether a share of so many replicas fits on one device beside the shares that are there; how many replicas are free
  // is another question.
  bool has_device_for(int64_t replicas) const {
    return devices.replicas().fits(replicas, std::max<int64_t>(1, node.gpus.replicas), gpus_allocatable());
  }

  // Of share_resource.
  int64_t gpus_allocatable() const {
    return share_resource.value < allocatable.size() ? allocatable[share_resource.value] : 0;
  }
  Int128 gpus_used() const { return share_resource.value < used.size() ? used[share_resource.value] : 0; }
  Int128 gpus_promised() const { return promises.promised(share_resource) + devices.count_promised(); }

 private:
  bool keeps_promises_beside_shares() const;
};

// Read access to a node for policies. Cheap to copy; valid until the engine's state changes.
class NodeView {
 public:
  NodeView(const NodeState& state, const ResourceTable& resources, const VolumeState& volumes, const RequestMix& mix)
      : state_(&state), resources_(&resources), volumes_(&volumes), mix_(&mix) {}

  const model::Node& node() const { return state_->node; }
  bool has_gpus() const { return state_->has_gpus; }
  bool is_being_cut() const { return state_->is_being_cut(); }
  uint32_t pool() const { return state_->pool; }
  int64_t gpu_price_ppm() const { return state_->gpu_price_ppm; }
  // Nothing runs there but what runs on every node.
  bool idle() const { return state_->working_pods == 0; }
  int64_t allocatable(ResourceId id) const { return at(state_->allocatable, id); }
  // What its pods ask for, at most kMaxAmount, which is above any allocatable.
  int64_t used(ResourceId id) const { return id.value < state_->used.size() ? narrow(state_->used[id.value]) : 0; }
  int64_t free(ResourceId id) const { return allocatable(id) - used(id); }
  int64_t scored_cpu_millis() const { return narrow(state_->scored_cpu_millis); }
  int64_t scored_memory_bytes() const { return narrow(state_->scored_memory_bytes); }
  const SharedDevices& devices() const { return state_->devices; }
  const ListedDevices& listed() const { return state_->listed; }
  model::DeviceSet best_devices(const PodClass& cls) const { return state_->best_devices(cls); }
  int32_t best_shared(int64_t units) const { return state_->best_shared(units); }
  int64_t most_shared() const { return state_->most_shared(); }
  uint32_t on_gone() const { return state_->on_gone; }
  ResourceId share_resource() const { return state_->share_resource; }
  int64_t replicas_beside_requests(const PodClass& cls) const { return state_->replicas_beside_requests(cls); }
  bool has_device_for(int64_t replicas) const { return state_->has_device_for(replicas); }
  const std::vector<model::HostPort>& host_ports() const { return state_->host_ports; }
  const std::vector<std::pair<ClaimRecord*, uint32_t>>& claims() const { return state_->claims; }
  const ResourceTable& resources() const { return *resources_; }
  const VolumeState& volumes() const { return *volumes_; }
  // What the cluster is asked for; measured only where a policy needs it.
  const RequestMix& mix() const { return *mix_; }

  static int64_t narrow(Int128 sum) { return static_cast<int64_t>(std::min<Int128>(sum, kMaxAmount)); }

 private:
  static int64_t at(const std::vector<int64_t>& amounts, ResourceId id) {
    return id.value < amounts.size() ? amounts[id.value] : 0;
  }
  const NodeState* state_;
  const ResourceTable* resources_;
  const VolumeState* volumes_;
  const RequestMix* mix_;
};

}  // namespace berth::engine
