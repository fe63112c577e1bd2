// VolumeState: claims, volumes and storage as the engine believes them, what it has chosen for claims included.
//
// A claim that waits for its first consumer gets its volume, or the node to provision for, together with the pod's
// place: a choice. It stands until the API server shows it, or until no pod with a place uses the claim any more, so
// that two pods can never be given the same volume. State owns this object and tells it who uses what; it answers with
// what has to be looked at again (Touched). Owner thread only.
//
// Invariants: 1. a volume is chosen for at most one claim; 2. only claims that a pod with a place uses have a choice;
// 3. a record lives as long as the claim exists, a class names it or a pod uses it.
// Source: kube-scheduler's VolumeBinding plugin (FindPodVolumes, AssumePodVolumes) and FindMatchingVolume.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/ids.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/volumes.h"

namespace berth::engine {

// What Berth has decided for an unbound claim.
struct ClaimChoice {
  std::string claim_uid;
  std::string volume;        // empty: one is to be provisioned
  std::string node;          // for which
  bool carried_out = false;  // a pod that used the claim meanwhile is bound, so the API server will show the choice
  friend bool operator==(const ClaimChoice&, const ClaimChoice&) = default;
};

struct ClaimRecord {
  std::string key;                              // "namespace/name"
  std::optional<model::VolumeClaim> object;     // none: no such claim is known
  std::optional<ClaimChoice> choice;            // while the API server does not show it
  absl::btree_map<NodeSlot, uint32_t> used_on;  // pods with a place that use it, by node
  uint32_t on_their_way = 0;                    // those of them that are not bound yet
  absl::btree_set<ClassId> classes;             // that name it
};

class VolumeState {
 public:
  // Classes whose candidates are stale as a whole, and nodes that changed.
  struct Touched {
    absl::btree_set<ClassId> classes;
    absl::btree_set<NodeSlot> nodes;
    std::vector<std::string> node_names;
  };

  void upsert(model::StorageObject object, Touched& touched);
  void remove(model::StorageKind kind, const std::string& key, Touched& touched);
  // Names of all objects of a kind, in order.
  std::vector<std::string> keys(model::StorageKind kind) const;
  // All objects, in the order of their kinds and names.
  std::vector<model::StorageObject> objects() const;

  // A class names claims, until it leaves. The records stay where they are meanwhile.
  std::vector<ClaimRecord*> join(ClassId cls, const std::vector<model::ClaimUse>& claims);
  void leave(ClassId cls, const std::vector<ClaimRecord*>& claims);
  // A pod that uses the claims has got a place on the node (+1) or lost it (-1), bound or on its way.
  void use(const std::vector<ClaimRecord*>& claims, NodeSlot node, int sign, bool bound, Touched& touched);
  // A pod that was on its way has been bound.
  static void arrive(const std::vector<ClaimRecord*>& claims);

  // Whether a node can have the volumes of a pod, and which volumes it would get.
  struct Fit {
    bool reachable = true;  // what is bound can be reached from the node
    bool found = true;      // what is unbound finds a volume or can be provisioned
    bool space = true;      // and there is room to provision it
    uint32_t claim = 0;     // the first that stands in the way
    std::vector<std::pair<ClaimRecord*, ClaimChoice>> choices;
    bool ok() const { return reachable && found && space; }
  };
  Fit fit(const std::vector<ClaimRecord*>& claims, const model::Node& node) const;
  // Why no node can do, whichever it is, in kube-scheduler's words; empty when one might.
  std::string objection(const std::vector<model::ClaimUse>& uses, const std::vector<ClaimRecord*>& claims) const;
  void choose(ClaimRecord& claim, ClaimChoice choice, Touched& touched);

  const model::Volume* volume(const std::string& name) const;
  // The volume that a claim is bound to; null while it is not, or where the volume is unknown.
  const model::Volume* volume_of(const ClaimRecord& claim) const;
  // Attached to a node that runs a pod with the claim: (CSI driver, name at the driver); an empty driver: none.
  std::pair<std::string, std::string> attachment(const ClaimRecord& claim) const;
  // How many volumes the node can attach, by driver; null: nothing is known.
  const model::AttachLimits* attach_limits(const std::string& node) const;

  const absl::btree_map<std::string, std::unique_ptr<ClaimRecord>>& claims() const { return claims_; }
  // Volumes that are chosen for a claim which the API server does not show as bound yet.
  const absl::btree_map<std::string, ClaimRecord*>& chosen_volumes() const { return chosen_; }

 private:
  // Volumes of one storage class that are free to be matched, the smallest first.
  using BySize = absl::btree_map<std::pair<int64_t, std::string>, const model::Volume*>;
  struct Pool {
    BySize anywhere;                                   // the affinity, if any, does not name hosts
    absl::flat_hash_map<std::string, BySize> on_host;  // by the hosts that it names
  };

  void set(model::VolumeClaim claim, Touched& touched);
  void set(model::Volume volume, Touched& touched);
  void set(model::StorageClass object, Touched& touched);
  void set(model::AttachLimits object, Touched& touched);
  void set(model::StorageDriver object, Touched& touched);
  void set(model::StorageCapacity object, Touched& touched);
  void remove_volume(const std::string& name, Touched& touched);

  ClaimRecord& record(const std::string& key);
  void drop_if_unused(ClaimRecord& claim);
  void index(ClaimRecord& claim);
  void unindex(ClaimRecord& claim);
  void index(const model::Volume& volume);
  void unindex(const model::Volume& volume);
  void touch(const ClaimRecord& claim, Touched& touched) const;
  void touch_unbound(const std::string& storage_class, Touched& touched) const;
  void touch_class(const std::string& storage_class, Touched& touched) const;
  void touch_all_unbound(Touched& touched) const;
  void touch_volume(const model::Volume& volume, Touched& touched) const;
  void drop_choice(ClaimRecord& claim, Touched& touched);
  void settle_choice(ClaimRecord& claim, Touched& touched);
  const model::Volume* find_volume(const ClaimRecord& claim, const model::Node& node, const Fit& so_far,
                                   bool& settled) const;
  const model::Volume* smallest(const BySize& volumes, const ClaimRecord& claim, const model::Node& node,
                                const Fit& so_far) const;
  bool has_capacity(const model::VolumeClaim& claim, const model::StorageClass& cls, const model::Node& node) const;
  void fit_unbound(ClaimRecord& claim, const model::Node& node, Fit& out) const;
  const model::StorageClass* class_of(const model::VolumeClaim& claim) const;

  absl::btree_map<std::string, std::unique_ptr<ClaimRecord>> claims_;
  std::map<std::string, model::Volume> volumes_;
  std::map<std::string, model::StorageClass> classes_;
  std::map<std::string, model::AttachLimits> limits_;
  std::map<std::string, model::StorageDriver> drivers_;
  std::map<std::string, model::StorageCapacity> capacities_;

  absl::btree_map<std::string, ClaimRecord*> chosen_;                                     // by volume
  absl::flat_hash_map<std::string, absl::btree_map<std::string, ClaimRecord*>> unbound_;  // by storage class, claim
  absl::flat_hash_map<std::string, absl::btree_map<std::string, ClaimRecord*>> bound_;    // by volume, claim
  absl::flat_hash_map<std::string, absl::btree_set<std::string>> reserved_;  // by claim: volumes that name it
  absl::flat_hash_map<std::string, Pool> pools_;                             // by storage class
};

}  // namespace berth::engine
