// Policies: what decides whether a pod fits a node (filters) and which fitting node is best (scores).
//
// A policy is one file in src/policy: a pure function of pod class and node, and a PolicyInfo that describes it. The
// same descriptor serves configuration, `berth policies` and the docs. Filters run in ascending `order`; the first one
// that objects to a node ends that node's list, as in kube-scheduler. A score is 0 to kMaxScore, more is better, and is
// multiplied by its configured weight; scores are node-local, so that one node's change never moves another's score.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/node_state.h"
#include "engine/pod_class.h"

namespace berth::engine {

inline constexpr int32_t kMaxScore = 1000;

struct Reason;

// One way in which a node can turn a pod away; a static object beside the filter that gives it. Identity is the text.
struct ReasonInfo {
  std::string_view text;          // kube-scheduler's words, for example "node(s) had untolerated taint(s)"
  bool names_resource = false;    // the resource's name is appended
  bool preemption_helps = false;  // removing pods from the node could change it
  // What exactly is wrong on this node: "taint gpu=true:NoSchedule", "short by 2 (asks 4, free 2 of 8)".
  std::string (*detail)(const PodClass&, const NodeView&, const Reason&) = nullptr;
};

struct Reason {
  const ReasonInfo* info = nullptr;
  ResourceId resource;  // for names_resource
  uint32_t index = 0;   // filter's own: which taint, which port
};

using Reasons = std::vector<Reason>;

// Appends its reasons when the node is unfit; appends nothing when it is fit.
using FilterFunction = void (*)(const PodClass&, const NodeView&, Reasons&);
using ScoreFunction = int32_t (*)(const PodClass&, const NodeView&);

struct PolicyInfo {
  std::string_view name;     // kebab-case, as in berth.yaml
  std::string_view summary;  // one sentence for people
  FilterFunction filter = nullptr;
  ScoreFunction score = nullptr;
  int32_t order = 0;           // filters: position
  int32_t default_weight = 0;  // scores: points are multiplied by it; 0 turns the rule off
};

constexpr PolicyInfo filter_policy(std::string_view name, std::string_view summary, int32_t order, FilterFunction f) {
  return {name, summary, f, nullptr, order, 0};
}
constexpr PolicyInfo score_policy(std::string_view name, std::string_view summary, int32_t weight, ScoreFunction f) {
  return {name, summary, nullptr, f, 0, weight};
}

struct WeightedScore {
  const PolicyInfo* policy = nullptr;
  int32_t weight = 0;
};

// The policies that one engine runs with; see policy/registry.h for how a set is made from configuration.
struct PolicySet {
  std::vector<const PolicyInfo*> filters;  // in order
  std::vector<WeightedScore> scores;       // weight > 0
};

}  // namespace berth::engine
