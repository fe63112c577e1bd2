// In which order pods are served and spared, and what it costs to send some away: a part of the scheduler that is small
// and obviously right (engine/brute_force_test.h). For tests only.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/brute_force_peers_test.h"
#include "model/pod.h"

namespace berth::engine::testing {

inline int64_t started_at(const model::Pod& pod) { return pod.started == Time{} ? INT64_MAX : pod.started.nanos; }

// In the queue.
inline bool comes_before(const model::Pod& a, const model::Pod& b) {
  return std::make_tuple(-int64_t{a.priority}, a.created.nanos, a.namespace_name, a.name, a.uid) <
         std::make_tuple(-int64_t{b.priority}, b.created.nanos, b.namespace_name, b.name, b.uid);
}

// On a node.
inline bool more_important(const model::Pod& a, const model::Pod& b) {
  return std::make_tuple(-int64_t{a.priority}, started_at(a), a.namespace_name, a.name, a.uid) <
         std::make_tuple(-int64_t{b.priority}, started_at(b), b.namespace_name, b.name, b.uid);
}

inline void remove(BruteForcePeers::Place& place, const std::string& uid) {
  std::erase_if(place.pods, [&](const model::Pod& other) { return other.uid == uid; });
}

// kube-scheduler's sentence about so many nodes, of which so many have each reason.
inline std::string unavailable(size_t nodes, const std::map<std::string, int>& counts) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : counts) parts.push_back(std::to_string(count) + " " + reason);
  std::sort(parts.begin(), parts.end());
  std::string out = "0/" + std::to_string(nodes) + " nodes are available:";
  for (size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? " " : ", ") + parts[i];
  return out + ".";
}

// Whether taking pods away from the node could change all of these reasons.
inline bool preemption_helps(const model::Pod& pod, const model::Node& node, const std::vector<std::string>& reasons) {
  return std::all_of(reasons.begin(), reasons.end(), [&](const std::string& reason) {
    if (reason.starts_with("Insufficient "))
      return pod.spec->requests.get(reason.substr(13)) <= node.allocatable.get(reason.substr(13));
    return reason == "Too many pods" || reason == "node(s) didn't have free ports for the requested pod ports" ||
           reason == "node(s) didn't match pod topology spread constraints" ||
           reason == "node(s) didn't match pod anti-affinity rules" ||
           reason == "node(s) didn't satisfy existing pods anti-affinity rules";
  });
}

struct BruteForcePlan {
  std::vector<model::Pod> victims, displaced;
  int violations = 0;
  // The less, the better: kube-scheduler's criteria in their order.
  auto cost() const {
    int64_t highest = INT64_MIN, sum = 0, started = INT64_MIN;
    for (const model::Pod& pod : victims) highest = std::max<int64_t>(highest, pod.priority);
    for (const model::Pod& pod : victims) {
      sum += int64_t{pod.priority} + (int64_t{1} << 31);
      if (pod.priority == highest) started = std::max(started, -started_at(pod));
    }
    return std::make_tuple(violations, highest, sum, victims.size(), started);
  }
};

}  // namespace berth::engine::testing
