// State: the cluster as the engine believes it, reserved placements included.
//
// Owner thread only. Events (what the server says) and Txn (what Berth decides) are the only writers; every write to a
// node gives it a new generation and an entry in the change log, from which pod classes learn what to re-examine.
//
// Invariants: 1. a pod's requests are charged to exactly one node when its phase holds_room(), else to none; 2. the
// sum of the charged requests of a node's pods is its `used`; 3. NodeState::order sorts nodes by name.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/class_key.h"
#include "engine/decision.h"
#include "engine/device_topologies.h"
#include "engine/node_state.h"
#include "engine/peers.h"
#include "engine/pod_class.h"
#include "engine/pod_state.h"
#include "engine/queue_catalog.h"
#include "engine/resource_table.h"
#include "engine/topology.h"
#include "engine/volume_state.h"
#include "model/node.h"
#include "model/pod.h"

namespace berth::engine {

class State {
 public:
  explicit State(NodeCatalog catalog = {}, QueueCatalog queues = {})
      : catalog_(std::move(catalog)), queues_(std::move(queues)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Nodes.
  NodeSlot upsert_node(model::Node node);
  void remove_node(const std::string& name);
  void set_repartitioning(const std::string& name, bool under_way);  // of a node that exists; see NodeRepartitioning
  // After a pod was bound there, or is gone for good. `ended`: its full name, if kubelet has said that it has ended.
  void settle_strangers(NodeSlot slot, const std::string& ended = "");
  NodeSlot find_node(const std::string& name) const;
  const NodeState& node(NodeSlot slot) const { return nodes_[slot.value]; }
  NodeView view(NodeSlot slot) const { return NodeView(nodes_[slot.value], resources_, volumes_, mix_); }
  // NodeView::used() by ResourceId, without what is kept for nominated pods. O(pods of the node).
  std::vector<int64_t> used_without_nominees(NodeSlot slot) const;
  size_t node_slots() const { return nodes_.size(); }   // slots ever used; some may be free
  size_t node_count() const { return present_nodes_; }  // nodes that exist
  const absl::btree_map<std::string, NodeSlot>& nodes_by_name() const { return nodes_by_name_; }
  // Nodes whose MIG geometry Berth may choose (model::DynamicMig), by name.
  const absl::btree_set<std::string>& mig_nodes() const { return mig_nodes_; }

  // Pods. add_pod() creates the record in phase kNotQueued.
  void reserve_pods(size_t count);  // so many are about to be known in all
  PodSlot add_pod(model::Pod&& pod);
  void replace_pod(PodSlot slot, model::Pod&& pod);  // new facts; phase and place stay
  void remove_pod(PodSlot slot);                     // must not hold room
  PodSlot find_pod(const std::string& uid) const;
  const PodState& pod(PodSlot slot) const { return pods_[slot.value]; }
  PodState& mutable_pod(PodSlot slot) { return pods_[slot.value]; }
  size_t pod_count() const { return pod_index_.size(); }
  const PodIndex& pods() const { return pod_index_; }  // all that are known, in no order

  // Charges the pod to the node and sets its phase; charge-only moves between phases leave the node's use alone.
  // `own`: the devices that it had there before, to have them again.
  void assign(PodSlot pod, NodeSlot node, PodPhase phase, const DeviceUse& own = {});
  void unassign(PodSlot pod, PodPhase phase);
  // The devices of its node that the pod has or shares, as far as they are known.
  DeviceNames devices_of(PodSlot pod) const;
  // The lowest priority of any pod that holds room; INT32_MAX when none does.
  int32_t lowest_priority() const { return placed_priorities_.empty() ? INT32_MAX : placed_priorities_.begin()->first; }
  // What is decided about the pods of a node has to be looked at again.
  void touch_node_of(PodSlot pod) { touch(pods_[pod.value].node); }
  // Changes of a pod what shares that come to its node go by: whether it leaves, and when room kept for it is enough.
  void revise(PodSlot pod, const std::function<void(PodState&)>& change);
  // For trials: a pod of the class comes (+1) or goes (-1).
  static void charge_ports(NodeState& node, const PodClass& cls, int64_t sign);
  static void count_share(NodeState& node, const DeviceUse& use, int sign);
  NodeSlot node_or_placeholder(const std::string& name);  // the slot of a node that may not exist yet

  // Storage. What changes invalidates the classes and nodes that it concerns, and no others.
  void upsert_storage(model::StorageObject object);
  void remove_storage(model::StorageKind kind, const std::string& key);
  void replace_storage(model::StorageKind kind, const std::vector<model::StorageObject>& objects);
  const VolumeState& volumes() const { return volumes_; }
  // Chooses volumes for the unbound claims of a placed pod; the choices that stand for its claims; their return.
  void choose_volumes(PodSlot pod);
  std::vector<std::pair<std::string, ClaimChoice>> volume_choices(PodSlot pod) const;
  void restore_choices(const std::vector<std::pair<std::string, ClaimChoice>>& choices);
  std::vector<VolumeBinding> volumes_to_bind(PodSlot pod) const;  // before the placed pod is

  // Classes.
  const PodClass& pod_class(ClassId id) const { return classes_[id.value]; }
  size_t class_slots() const { return classes_.size(); }
  // Pods whose class is out of date, because a selector that sees them came or went; by slot. A waiting one leaves its
  // class's queue before reclassify().
  bool has_stale() const { return !stale_.empty(); }
  std::vector<PodSlot> take_stale();
  void reclassify(PodSlot slot);

  // Inter-pod terms.
  const PeerIndex& peers() const { return peers_; }
  const Topology& topology() const { return topology_; }
  void set_namespace_labels(const std::string& name, const model::Labels& labels);

  const ResourceTable& resources() const { return resources_; }
  const RequestMix& mix() const { return mix_; }
  RequestMix& mutable_mix() { return mix_; }

  // Change log: node slots in order of change. Entries before change_base() are forgotten.
  uint64_t change_base() const { return change_base_; }
  // Grows when NodeState::order of existing nodes changed.
  uint64_t order_version() const { return order_version_; }
  uint64_t change_end() const { return change_base_ + changes_.size(); }
  NodeSlot change(uint64_t index) const { return changes_[index - change_base_]; }

  // A hash of nodes, pods and placements, the same for equal states whatever their history. O(everything).
  uint64_t hash() const;

 private:
  friend class Trial;
  friend class NodeGuesses;

  ClassId intern_class(const model::Pod& pod, IdentityId identity);
  void release_class(ClassId id);
  NodeSlot take_node_slot(const std::string& name);
  void free_placeholder(NodeSlot slot);
  void give_order(absl::btree_map<std::string, NodeSlot>::iterator at);
  void renumber();
  void charge(const PodState& pod, int64_t sign);
  // Devices: engine/state_gpus.cc, engine/state_strangers.cc.
  static bool names_devices(const NodeState& node, const PodClass& cls);
  DeviceUse find_share(const NodeState& node, const PodState& pod, int32_t device) const;
  DeviceUse find_whole(const NodeState& node, const PodState& pod, model::DeviceSet own) const;
  DeviceUse find_devices(const NodeState& node, const PodState& pod, const DeviceUse& own) const;
  void charge_devices(PodState& pod, const DeviceUse& own = {});
  void charge_use(PodState& pod, const DeviceUse& use);
  DeviceUse release_devices(PodState& pod);
  void hear_devices(PodState& pod, const DeviceUse& own);
  void settle_guesses(NodeSlot slot);
  bool set_strangers(NodeState& node, bool gone);
  void with_devices_released(NodeState& node, const std::function<void()>& change);
  void touch(NodeSlot slot);
  void touch(const VolumeState::Touched& touched);
  void use_claims(NodeSlot slot, const PodClass& cls, PodPhase phase, int sign);

  // Inter-pod terms: engine/state_peers.cc.
  void join_identity(PodSlot slot, IdentityId id);
  void leave_identity(PodSlot slot);
  void hold_peers(PodClass& cls);
  void release_peers(PodClass& cls);
  SelectorId hold_selector(const std::vector<model::PeerSelector>& all_of);
  TermId hold_term(PodClass& cls, const std::vector<model::PeerSelector>& all_of, const std::string& key);
  TermId hold_term(PodClass& cls, SelectorId selector, const std::string& key);
  void release_selector(SelectorId id);
  std::vector<TopologyKeyId> acquire_keys(const model::Peers& asked);
  void release_key(TopologyKeyId key);
  void set_domains(NodeSlot slot, NodeDomains domains);
  void count_peers(PodSlot slot, NodeSlot on, int32_t sign);
  void count_seen(NodeState& node, SelectorId selector, int32_t sign);
  void count_selector(SelectorId selector, IdentityId identity, int32_t sign);

  const NodeCatalog catalog_;
  const QueueCatalog queues_;
  ResourceTable resources_;
  VolumeState volumes_;
  RequestMix mix_;
  std::vector<NodeState> nodes_;
  std::vector<NodeSlot> free_nodes_;
  size_t present_nodes_ = 0;
  absl::btree_map<int32_t, uint32_t> placed_priorities_;  // of the pods that hold room, how many
  bool in_trial_ = false;
  NodeState before_trial_;  // of the Trial's node, what it changes
  absl::btree_map<std::string, NodeSlot> nodes_by_name_;
  absl::btree_set<std::string> mig_nodes_;
  std::vector<PodState> pods_;
  std::vector<PodSlot> free_pods_;
  PodIndex pod_index_{0, PodIndex::hasher{&pods_}, PodIndex::key_equal{&pods_}};
  std::deque<PodClass> classes_;  // stays where it is: classes_by_key_ points into it
  std::vector<ClassId> free_classes_;
  uint64_t class_serial_ = 0;
  absl::flat_hash_map<ClassKey, ClassId> classes_by_key_;
  PeerIndex peers_;
  Topology topology_;
  DeviceTopologies device_topologies_;
  absl::btree_set<IdentityId> stale_;  // their `matches` changed since take_stale()
  std::deque<NodeSlot> changes_;
  uint64_t change_base_ = 0;
  uint64_t order_version_ = 0;
};

}  // namespace berth::engine
