// For pods that want to be together, how many of those that are to come a domain has room for, counted afresh; the part
// of BruteForce (engine/brute_force_test.h) that engine/gather_room.h is compared with. For tests only.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/brute_force_fit_test.h"
#include "engine/brute_force_peers_test.h"
#include "engine/state.h"

namespace berth::engine::testing {

class BruteForceGathering {
 public:
  using Place = BruteForcePeers::Place;

  BruteForceGathering(const BruteForcePeers::Places& places, const BruteForcePeers& peers)
      : places_(places), peers_(peers) {}

  // Some pod of the state, placed or not; one on a node that nobody knows, or nominated for it, is not to come.
  void add(const PodState& pod, const State& state) {
    const bool lost = holds_room(pod.phase) && !state.node(pod.node).present;
    all_.push_back({pod.pod, pod.cls, state.pod_class(pod.cls).pods, lost});
  }
  // A pod whose nomination has ended is to come.
  void add_again(const model::Pod& pod) { std::ranges::find(all_, pod.uid, uid)->lost = false; }

  // The terms by which the pod wants to be together with others.
  static std::vector<model::PodAffinityTerm> gathering_terms(const model::Pod& pod) {
    std::vector<model::PodAffinityTerm> out;
    for (const auto& term : pod.spec->peers.affinity)
      if (term.gathers) out.push_back(term);
    for (const auto& wish : pod.spec->peers.preferred)
      if (wish.term.gathers) out.push_back(wish.term);
    return out;
  }

  // While no pod has a place that one of the pod's gathering terms sees: over the keys of these, for how many of those
  // to come the nodes in this one's domain have room; four times as many where that is all of them.
  int64_t score(const model::Pod& pod, const model::Node& node) const {
    std::set<std::string> keys;
    for (const model::PodAffinityTerm& term : gathering_terms(pod)) {
      keys.insert(term.topology_key);
      for (const auto& [name, place] : places_)
        for (const model::Pod& other : place.pods)
          if (peers_.sees(term.peers, other) && place.node.labels.contains(term.topology_key)) return 0;
    }
    const Demand demand = keys.empty() ? Demand() : demand_of(pod);
    int64_t sum = 0;
    for (const std::string& key : keys) sum += places_in(node, key, apart_key(pod), demand);
    return sum;
  }

 private:
  // One pod of each class, the pod's own first, and how many there are.
  using Demand = std::vector<std::pair<model::Pod, int64_t>>;
  struct Known {
    model::Pod pod;
    ClassId cls;
    int64_t alike = 0;  // pods of the class
    bool lost = false;
  };
  static std::string uid(const Known& known) { return known.pod.uid; }

  // Who is to come where the pod gathers: by class, its own first.
  Demand demand_of(const model::Pod& pod) const {
    const auto terms = gathering_terms(pod);
    const Known& self = *std::ranges::find(all_, pod.uid, uid);
    std::set<std::string> placed;
    for (const auto& [name, place] : places_)
      for (const model::Pod& other : place.pods) placed.insert(other.uid);
    std::map<ClassId, std::pair<model::Pod, int64_t>> others;
    int64_t own = 0;
    for (const Known& known : all_) {
      if (known.lost || placed.contains(known.pod.uid) || !peers_.sees(terms.front().peers, known.pod)) continue;
      if (known.cls == self.cls) ++own;
      else ++others.try_emplace(known.cls, known.pod, 0).first->second.second;
    }
    Demand out{{pod, own > 0 ? own : self.alike}};
    for (const auto& [cls, demand] : others) out.push_back(demand);
    return out;
  }

  // The first key by which the pod is kept from others of its kind, if some node has it.
  std::string apart_key(const model::Pod& pod) const {
    for (const model::PodAffinityTerm& term : pod.spec->peers.anti_affinity)
      for (const auto& [name, place] : places_)
        if (peers_.sees(term.peers, pod) && place.node.labels.contains(term.topology_key)) return term.topology_key;
    return "";
  }
  int64_t places_in(const model::Node& node, const std::string& key, const std::string& apart,
                    const Demand& demand) const {
    std::vector<std::map<std::string, int64_t>> by_apart(demand.size() + 1);  // the last: nodes that fit any
    std::map<std::string, Int128> free, wanted;  // pods may ask for as much as a number holds
    int64_t total = 0;
    for (const auto& [asked, count] : demand)
      for (const auto& [resource, amount] : asked.spec->requests)
        if (amount > 0) wanted[resource] += Int128{amount} * count;
    for (const auto& [name, place] : places_) {
      if (!BruteForcePeers::together(node, place.node, key)) continue;
      const std::string* value = place.node.labels.find(apart);
      const std::string domain = value == nullptr ? "" : "=" + *value;
      int64_t all = 0;
      for (size_t i = 0; i < demand.size(); ++i) {
        const int64_t pods = BruteForceFit::room(demand[i].first, place);
        by_apart[i][domain] += pods;
        all += pods;
      }
      by_apart.back()[domain] += all;
      for (const auto& [resource, amount] : wanted) {
        int64_t left = place.node.allocatable.get(resource);
        for (const model::Pod& other : place.pods) left -= std::max<int64_t>(other.spec->requests.get(resource), 0);
        if (all > 0) free[resource] += std::max<int64_t>(left, 0);
      }
    }
    const auto count = [](const std::map<std::string, int64_t>& pods) {
      int64_t sum = 0;
      for (const auto& [domain, here] : pods) sum += domain.empty() ? here : std::min<int64_t>(here, 1);
      return sum;
    };
    int64_t places = 0;
    for (size_t i = 0; i < demand.size(); ++i) {
      total += demand[i].second;
      places += std::min(count(by_apart[i]), demand[i].second);
    }
    places = std::min(places, count(by_apart.back()));
    for (const auto& [resource, amount] : wanted)
      if (free[resource] < amount) places = std::min(places, static_cast<int64_t>(total * free[resource] / amount));
    return places == total ? 4 * places : places;
  }
  const BruteForcePeers::Places& places_;
  const BruteForcePeers& peers_;
  std::vector<Known> all_;
};

}  // namespace berth::engine::testing
