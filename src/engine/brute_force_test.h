// A scheduler that is small and obviously right: the first waiting pod in order that fits somewhere, after a look at
// every node and a sum over everything that runs there, goes to the best such node; and so on. O(pods × nodes × pods);
// for tests only.
//
// It reads the facts (objects and phases) from State and nothing that the engine derives from them: neither use nor
// generations, classes, candidates, failure sets or the queue. Fit is written from the rules of the Kubernetes API on
// the model's values; only score functions are called, on a node that is accounted for here.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/brute_force_peers_test.h"
#include "engine/policy.h"
#include "engine/state.h"

namespace berth::engine::testing {

class BruteForce {
 public:
  struct Bind {
    std::string uid;
    std::string node;
    friend bool operator==(const Bind&, const Bind&) = default;
  };

  // The facts of `state` as a cycle at `now` finds them: back-offs that end by then have ended.
  BruteForce(const State& state, Time now, const PolicySet& policies)
      : policies_(policies),
        peers_(
            nodes_, [&state](const std::string& name) { return state.peers().namespace_labels(name); },
            [](const model::TopologySpreadConstraint& rule, const model::SchedulingSpec& spec,
               const model::Node& node) {
              return (rule.honors_affinity && !selected(spec, node)) || (rule.honors_taints && tainted(spec, node));
            }) {
    for (const auto& [name, slot] : state.nodes_by_name())
      if (state.node(slot).present) nodes_[name].node = state.node(slot).node;
    for (const auto& [uid, slot] : state.pods_by_uid()) {
      const PodState& pod = state.pod(slot);
      if (holds_room(pod.phase)) {
        const auto at = nodes_.find(state.node(pod.node).node.name);
        if (at != nodes_.end()) at->second.pods.push_back(pod.pod);
      } else if (pod.phase == PodPhase::kPending || (pod.phase == PodPhase::kBackoff && pod.backoff_until <= now)) {
        waiting_.push_back(pod.pod);
      }
    }
    std::sort(waiting_.begin(), waiting_.end(), [](const model::Pod& a, const model::Pod& b) {
      return std::make_tuple(-int64_t{a.priority}, a.created.nanos, a.namespace_name, a.name, a.uid) <
             std::make_tuple(-int64_t{b.priority}, b.created.nanos, b.namespace_name, b.name, b.uid);
    });
  }

  // What an unbounded cycle decides, in order.
  std::vector<Bind> place_all() {
    std::vector<Bind> binds;
    std::vector<model::Pod> left = waiting_;
    for (size_t i = 0; i < left.size();) {
      const model::Pod& pod = left[i];
      std::vector<Place*> fitting;  // by name: the first of equal ones stays
      for (auto& [name, place] : nodes_)
        if (why_not(pod, place).empty()) fitting.push_back(&place);
      if (fitting.empty()) {
        ++i;
        continue;
      }
      const auto scores = scores_of(pod, fitting);
      Place* best = fitting[static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin())];
      best->pods.push_back(pod);
      binds.push_back({pod.uid, best->node.name});
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;  // it may be what one before it looks for
    }
    return binds;
  }

  const std::vector<model::Pod>& waiting() const { return waiting_; }

  // kube-scheduler's text for a pod that fits nowhere.
  std::string message(const model::Pod& pod) const {
    if (nodes_.empty()) return "no nodes available to schedule pods";
    std::map<std::string, int> counts;
    for (const auto& [name, place] : nodes_)
      for (const std::string& reason : why_not(pod, place)) ++counts[reason];
    std::vector<std::string> parts;
    for (const auto& [reason, count] : counts) parts.push_back(std::to_string(count) + " " + reason);
    std::sort(parts.begin(), parts.end());
    std::string out = "0/" + std::to_string(nodes_.size()) + " nodes are available:";
    for (size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? " " : ", ") + parts[i];
    return out + ".";
  }

 private:
  using Place = BruteForcePeers::Place;

  std::vector<std::string> why_not(const model::Pod& pod, const Place& place) const {
    std::vector<std::string> out = why_not_alone(pod, place);
    if (const std::string peers = out.empty() ? peers_.why_not(pod, place.node) : ""; !peers.empty()) out = {peers};
    return out;
  }
  static bool tainted(const model::SchedulingSpec& spec, const model::Node& node) {
    return std::any_of(node.taints.begin(), node.taints.end(), [&](const model::Taint& taint) {
      return taint.effect != model::TaintEffect::kPreferNoSchedule && !tolerated(spec, taint);
    });
  }
  static std::vector<std::string> why_not_alone(const model::Pod& pod, const Place& place) {
    const model::SchedulingSpec& spec = *pod.spec;
    const model::Node& node = place.node;
    if (excluded_by_name(spec, node.name)) return {"node(s) didn't satisfy plugin(s) [NodeAffinity]"};
    if (node.unschedulable &&
        !tolerated(spec, {"node.kubernetes.io/unschedulable", "", model::TaintEffect::kNoSchedule}))
      return {"node(s) were unschedulable"};
    if (tainted(spec, node)) return {"node(s) had untolerated taint(s)"};
    if (!selected(spec, node)) return {"node(s) didn't match Pod's node affinity/selector"};
    for (const model::HostPort& wanted : spec.host_ports)
      for (const model::Pod& other : place.pods)
        for (const model::HostPort& taken : other.spec->host_ports)
          if (clash(wanted, taken)) return {"node(s) didn't have free ports for the requested pod ports"};
    std::vector<std::string> short_of;
    for (const auto& [name, amount] : spec.requests) {
      long double used = 0;  // no sum of requests overflows it
      for (const model::Pod& other : place.pods)
        used += static_cast<long double>(std::max<int64_t>(other.spec->requests.get(name), 0));
      if (amount <= 0 ||
          used + static_cast<long double>(amount) <= static_cast<long double>(node.allocatable.get(name)))
        continue;
      short_of.push_back(name == "pods" ? "Too many pods" : "Insufficient " + name);
    }
    return short_of;
  }

  // Every term of the required affinity lists node names, and none lists this one.
  static bool excluded_by_name(const model::SchedulingSpec& spec, const std::string& name) {
    if (!spec.affinity.required) return false;
    for (const model::NodeSelectorTerm& term : *spec.affinity.required) {
      bool names_nodes = false, allows = true;
      for (const auto& field : term.match_fields) {
        if (field.key != "metadata.name" || field.op != model::NodeSelectorOperator::kIn) continue;
        names_nodes = true;
        allows &= std::count(field.values.begin(), field.values.end(), name) > 0;
      }
      if (!names_nodes || allows) return false;
    }
    return true;
  }

  static bool tolerated(const model::SchedulingSpec& spec, const model::Taint& taint) {
    for (const model::Toleration& t : spec.tolerations) {
      if (!t.any_effect && t.effect != taint.effect) continue;
      if (!t.key.empty() && t.key != taint.key) continue;
      if (t.op == model::TolerationOperator::kExists) return true;
      if (t.op == model::TolerationOperator::kEqual && t.value == taint.value) return true;
    }
    return false;
  }

  static bool holds(const model::NodeSelectorRequirement& r, const std::string* value) {
    const bool listed = value != nullptr && std::count(r.values.begin(), r.values.end(), *value) > 0;
    switch (r.op) {
      case model::NodeSelectorOperator::kIn: return listed;
      case model::NodeSelectorOperator::kNotIn: return !listed;
      case model::NodeSelectorOperator::kExists: return value != nullptr;
      case model::NodeSelectorOperator::kDoesNotExist: return value == nullptr;
      case model::NodeSelectorOperator::kGt: return value != nullptr && std::stoll(*value) > std::stoll(r.values.at(0));
      case model::NodeSelectorOperator::kLt: return value != nullptr && std::stoll(*value) < std::stoll(r.values.at(0));
    }
    return false;
  }

  static bool selected(const model::SchedulingSpec& spec, const model::Node& node) {
    for (const auto& [key, value] : spec.node_selector)
      if (!node.labels.contains(key) || *node.labels.find(key) != value) return false;
    if (!spec.affinity.required) return true;
    for (const model::NodeSelectorTerm& term : *spec.affinity.required) {
      bool all = !term.match_expressions.empty() || !term.match_fields.empty();
      for (const auto& r : term.match_expressions) all = all && holds(r, node.labels.find(r.key));
      for (const auto& r : term.match_fields) all = all && r.key == "metadata.name" && holds(r, &node.name);
      if (all) return true;
    }
    return false;
  }

  static bool clash(const model::HostPort& a, const model::HostPort& b) {
    const bool any = a.ip == "0.0.0.0" || b.ip == "0.0.0.0";
    return a.port == b.port && a.protocol == b.protocol && (any || a.ip == b.ip);
  }

  // The weighted sum of the score policies on a node that is accounted for from nothing.
  int64_t score_of(const model::Pod& pod, const Place& place) const {
    State state;
    const NodeSlot node = state.upsert_node(place.node);
    for (const model::Pod& other : place.pods) state.assign(state.add_pod(other), node, PodPhase::kBound);
    const PodClass& cls = state.pod_class(state.pod(state.add_pod(pod)).cls);
    int64_t total = 0;
    for (const WeightedScore& score : policies_.scores)
      total += int64_t{score.policy->score(cls, state.view(node))} * score.weight;
    return total;
  }

  // Of nodes that fit, in their order: what each is worth by itself and, normalised, among them.
  std::vector<int64_t> scores_of(const model::Pod& pod, const std::vector<Place*>& fitting) const {
    std::vector<int64_t> out;
    out.reserve(fitting.size());
    for (const Place* place : fitting) out.push_back(score_of(pod, *place));
    for (const WeightedScore& score : policies_.group_scores) {
      std::vector<std::optional<int64_t>> raw;
      std::optional<int64_t> least, most;
      for (const Place* place : fitting) {
        raw.push_back(score.policy->name == "pod-topology-spread" ? peers_.spread_score(pod, place->node)
                                                                  : peers_.affinity_score(pod, place->node));
        if (!raw.back()) continue;
        least = std::min(least.value_or(*raw.back()), *raw.back());
        most = std::max(most.value_or(*raw.back()), *raw.back());
      }
      for (size_t i = 0; i < raw.size(); ++i)
        if (raw[i] && *least < *most) out[i] += (*raw[i] - *least) * kMaxScore / (*most - *least) * score.weight;
    }
    return out;
  }

  PolicySet policies_;
  std::map<std::string, Place> nodes_;
  BruteForcePeers peers_;
  std::vector<model::Pod> waiting_;
};

}  // namespace berth::engine::testing
