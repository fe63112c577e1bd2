// Whether a pod fits a node by itself, written from the rules of the Kubernetes API on the model's values; the part of
// BruteForce (engine/brute_force_test.h) that looks at one node and what runs there. For tests only.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/brute_force_peers_test.h"

namespace berth::engine::testing {

struct BruteForceFit {
  using Place = BruteForcePeers::Place;

  static bool tainted(const model::SchedulingSpec& spec, const model::Node& node) {
    return std::any_of(node.taints.begin(), node.taints.end(), [&](const model::Taint& taint) {
      return taint.effect != model::TaintEffect::kPreferNoSchedule && !tolerated(spec, taint);
    });
  }
  // How many such pods would fit by their requests, if one does.
  static int64_t room(const model::Pod& pod, const Place& place) {
    if (!why_not_alone(pod, place).empty()) return 0;
    int64_t out = INT32_MAX;
    for (const auto& [name, amount] : pod.spec->requests) {
      if (amount <= 0) continue;
      int64_t free = place.node.allocatable.get(name);
      for (const model::Pod& other : place.pods) free -= std::max<int64_t>(other.spec->requests.get(name), 0);
      out = std::min(out, free / amount);
    }
    return out;
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
};

}  // namespace berth::engine::testing
