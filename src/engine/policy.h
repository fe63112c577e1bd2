// Policies: what decides whether a pod fits a node (filters) and which fitting node is best (scores).
//
// A policy is one file in src/policy: a pure function of pod class and node, and a PolicyInfo that describes it. The
// same descriptor serves configuration, `berth policies` and the docs. Filters run in ascending `order`; the first one
// that objects to a node ends that node's list, as in kube-scheduler. A score is −kMaxScore to kMaxScore: below 0 where
// the rule speaks against the node, above where it speaks for it, 0 where it has nothing to say. It is multiplied by
// the weight that the pod's queue or the node's pool gives it; scores are node-local, so that one node's change never
// moves another's score. Group filters and scores judge a group of nodes at once, from what its topology domains hold
// (engine/groups.h).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/node_state.h"
#include "engine/pod_class.h"

namespace berth::engine {

inline constexpr int32_t kMaxScore = 1000;

class State;
struct Reason;

// What inter-pod terms see of a group of nodes that share their domains.
struct GroupFacts {
  struct Spread {
    bool in_domain = false;  // the nodes have the label
    int64_t matching = 0;    // pods in the domain
    int64_t fewest = 0;      // in any domain; 0 while there are fewer domains than minDomains
    int64_t domains = 0;
    bool exceeds = false;  // one more pod here would make the skew larger than maxSkew
  };
  const std::vector<DomainId>* domains = nullptr;
  bool lacks_affinity_key = false;  // of required affinity
  bool affinity = true;             // each required term has a pod in its domain
  bool affinity_anywhere = false;   // some pod, somewhere, matches
  TermId anti_affinity;             // of the class, that forbids the group; invalid: none
  TermId existing;                  // of a placed pod, that forbids the group; invalid: none
  int64_t weight = 0;               // sum of preferences
  // While no pod has a place that the class's pods want to gather with: what the domains where they would are worth by
  // for how many of those to come they have room (GatherRoom::worth()); else 0.
  int64_t room = 0;
  std::vector<Spread> spread;  // as ClassPeers::spread
};

// One way in which a node can turn a pod away; a static object beside the filter that gives it. Identity is the text.
struct ReasonInfo {
  std::string_view text;          // kube-scheduler's words, for example "node(s) had untolerated taint(s)"
  bool names_resource = false;    // the resource's name is appended
  bool preemption_helps = false;  // removing pods from the node could change it
  // What exactly is wrong on this node: "taint gpu=true:NoSchedule", "short by 2 (asks 4, free 2 of 8)".
  std::string (*detail)(const PodClass&, const NodeView&, const Reason&) = nullptr;
  std::string (*group_detail)(const PodClass&, const State&, const GroupFacts&, const Reason&) = nullptr;
};

struct Reason {
  const ReasonInfo* info = nullptr;
  ResourceId resource;  // for names_resource
  uint32_t index = 0;   // filter's own: which taint, which port
};

using Reasons = std::vector<Reason>;

// Appends its reasons when the node is unfit; appends nothing when it is fit.
using FilterFunction = void (*)(const PodClass&, const NodeView&, Reasons&);
// Before any node is looked at: why none can do, whichever it is; empty when one might. In kube-scheduler's words
// without a full stop, in Berth's own with one (see objection_message()).
// Asked again when PodClass::generation has grown.
using PreFilterFunction = std::string (*)(const PodClass&, const State&);
using ScoreFunction = int32_t (*)(const PodClass&, const NodeView&);
using GroupFilterFunction = void (*)(const PodClass&, const GroupFacts&, Reasons&);
// A score of any range, which is normalised over the groups that fit: 0 for the least, kMaxScore for the most; the
// same for all, and kNoGroupScore, give 0.
using GroupScoreFunction = int64_t (*)(const PodClass&, const GroupFacts&);
inline constexpr int64_t kNoGroupScore = INT64_MIN;

struct PolicyInfo {
  std::string_view name;            // kebab-case, as in berth.yaml
  std::string_view summary;         // one sentence for people
  FilterFunction filter = nullptr;  // a policy with a pre_filter has a filter, too
  ScoreFunction score = nullptr;
  int32_t order = 0;           // filters: position
  int32_t default_weight = 0;  // scores: points are multiplied by it; 0 turns the rule off
  GroupFilterFunction group_filter = nullptr;
  GroupScoreFunction group_score = nullptr;
  PreFilterFunction pre_filter = nullptr;
  bool heeds_pods = true;     // a filter's verdict may change with the pods that run on the node
  bool needs_prices = false;  // a score that says nothing without NodeCatalog::gpu_prices
  bool needs_mix = false;     // a score that goes by NodeView::mix()
  // A score that is one way to place: it speaks of the pods that are placed so (WeightedScore::concerns), else of all.
  model::Placement placement = model::Placement::kDefault;

  bool filters() const { return filter != nullptr || group_filter != nullptr; }
  bool scores() const { return score != nullptr || group_score != nullptr; }
};

constexpr PolicyInfo filter_policy(std::string_view name, std::string_view summary, int32_t order, FilterFunction f,
                                   PreFilterFunction pre_filter = nullptr) {
  return {name, summary, f, nullptr, order, 0, nullptr, nullptr, pre_filter};
}
// A filter that looks at the node object alone, whatever runs there. Of others, the engine only promises to tell them
// about the host ports and claims of a node's pods where the class asks for any itself.
constexpr PolicyInfo object_filter_policy(std::string_view name, std::string_view summary, int32_t order,
                                          FilterFunction f, PreFilterFunction pre_filter = nullptr) {
  return {name, summary, f, nullptr, order, 0, nullptr, nullptr, pre_filter, false};
}
constexpr PolicyInfo score_policy(std::string_view name, std::string_view summary, int32_t weight, ScoreFunction f) {
  return {name, summary, nullptr, f, 0, weight, nullptr, nullptr, nullptr};
}
constexpr PolicyInfo priced_score_policy(std::string_view name, std::string_view summary, int32_t weight,
                                         ScoreFunction f) {
  return {name, summary, nullptr, f, 0, weight, nullptr, nullptr, nullptr, true, true};
}
constexpr PolicyInfo mix_score_policy(std::string_view name, std::string_view summary, int32_t weight,
                                      ScoreFunction f) {
  return {name, summary, nullptr, f, 0, weight, nullptr, nullptr, nullptr, true, false, true};
}
constexpr PolicyInfo placement_policy(std::string_view name, std::string_view summary, int32_t weight, ScoreFunction f,
                                      model::Placement placement) {
  PolicyInfo out = score_policy(name, summary, weight, f);
  out.placement = placement;
  return out;
}
// A filter of groups, which objects after all filters of nodes, and the score that goes with it.
constexpr PolicyInfo group_policy(std::string_view name, std::string_view summary, int32_t order, GroupFilterFunction f,
                                  int32_t weight, GroupScoreFunction s) {
  return {name, summary, nullptr, nullptr, order, weight, f, s, nullptr};
}

}  // namespace berth::engine
