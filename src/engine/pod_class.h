// PodClass: all pods with the same scheduling-relevant spec and priority, compiled for the engine.
//
// A policy sees a pod only through its class, which is why equal pods can share one verdict and one list of ranked
// candidates (engine/candidates.h).
#pragma once

#include <memory>
#include <vector>

#include "engine/ids.h"
#include "engine/peers.h"
#include "engine/resource_table.h"
#include "model/node.h"
#include "model/pod.h"

namespace berth::engine {

struct ClaimRecord;

// What a class asks of other pods, with its selectors, keys and terms held in the PeerIndex.
struct ClassPeers {
  struct Spread {
    const model::TopologySpreadConstraint* rule = nullptr;  // of the class's spec
    SelectorId selector;
    TopologyKeyId key;
    bool matches_self = false;
  };
  std::vector<TermId> affinity;  // required; all of one selector, which sees the pods that match every term
  bool matches_own_affinity = false;
  std::vector<TermId> anti_affinity;  // required
  std::vector<std::pair<TermId, int32_t>> preferred;
  std::vector<TermId> gathering;  // required or preferred: where none of its pods is, its pods need room
  std::vector<Spread> spread;
  std::vector<SelectorId> hopes;  // of required affinity and spread: more pods that they see may help; sorted
  std::vector<OwnedTerm> owned;   // what others see of its pods
  std::vector<TermId> held;       // every term above, once for each acquire_term()
};

struct PodClass {
  std::shared_ptr<const model::SchedulingSpec> spec;
  int32_t priority = 0;
  bool preempts = true;                  // may make room for itself
  bool gave_up = false;                  // tried that too often in vain of late
  uint32_t queue_weights = 0;            // of PolicySet::queue_scores, counted from 1; 0: no queue's
  std::vector<ResourceAmount> requests;  // amounts above 0, sorted by id
  bool packs = false;                    // placement as resolved: pack, else spread
  bool requests_gpu = false;
  bool shares_gpu = false;  // asks for a share of a GPU
  // What scores count for a pod that requests no cpu or memory, so that such pods still spread (kube-scheduler's
  // DefaultMilliCPURequest and DefaultMemoryRequest).
  int64_t scored_cpu_millis = 0;
  int64_t scored_memory_bytes = 0;
  // Nodes that matchFields allow; empty: any (see policy/node_affinity.cc).
  std::vector<std::string> required_node_names;
  bool restricts_node_names = false;
  int64_t preferred_weight_sum = 0;

  // The selectors that see its pods, sorted: with the spec they make the class.
  std::vector<SelectorId> seen_by;
  ClassPeers peers;
  std::vector<ClaimRecord*> claims;  // of spec->claims, one for one

  uint32_t pods = 0;    // that refer to this class
  uint64_t serial = 0;  // unique over time, unlike the ClassId, which is reused
  // Grows when something changed that is no node and that decides where the class fits: its claims and their volumes.
  uint64_t generation = 1;

  int64_t request(ResourceId id) const {
    for (const ResourceAmount& r : requests)
      if (r.id == id) return r.amount;
    return 0;
  }
};

// True when nodeSelector and required node affinity select the node.
bool selects(const PodClass& cls, const model::Node& node);

// Compiles a spec; names are interned in `resources`.
PodClass compile_class(std::shared_ptr<const model::SchedulingSpec> spec, ResourceTable& resources);

}  // namespace berth::engine
