// A scheduler that is small and obviously right: the first waiting pod in order that fits somewhere, after a look at
// every node and a sum over everything that runs there, goes to the best such node; and so on. A pod that fits nowhere
// looks on every node whom it could send away. O(pods² × nodes × pods); for tests only.
//
// It reads the facts (objects and phases) from State and nothing that the engine derives from them: neither use nor
// generations, classes, candidates, failure sets or the queue. Fit is written from the rules of the Kubernetes API on
// the model's values; only score functions are called, on a node that is accounted for here.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/brute_force_fit_test.h"
#include "engine/brute_force_peers_test.h"
#include "engine/brute_force_plan_test.h"
#include "engine/brute_force_scores_test.h"
#include "engine/policy_set.h"
#include "engine/state.h"
#include "model/disruption_budget.h"

namespace berth::engine::testing {

class BruteForce {
 public:
  // "uid->node", "uid leaves node" or "uid nominated for node".
  using Action = std::string;

  // The facts of `state` as a cycle at `now` finds them: back-offs that end by then have ended.
  BruteForce(const State& state, Time now, const PolicySet& policies, std::vector<model::DisruptionBudget> budgets = {},
             std::set<std::string> protecting_namespaces = {})
      : policies_(policies),
        budgets_(std::move(budgets)),
        protecting_namespaces_(std::move(protecting_namespaces)),
        peers_(
            nodes_, [&state](const std::string& name) { return state.peers().namespace_labels(name); },
            [](const model::TopologySpreadConstraint& rule, const model::SchedulingSpec& spec,
               const model::Node& node) {
              return (rule.honors_affinity && !BruteForceFit::selected(spec, node)) ||
                     (rule.honors_taints && BruteForceFit::tainted(spec, node));
            }) {
    for (const auto& [name, slot] : state.nodes_by_name())
      if (state.node(slot).present) nodes_[name].node = state.node(slot).node;
    for (const PodSlot slot : state.pods()) {
      const PodState& pod = state.pod(slot);
      gathering_.add(pod, state);
      if (holds_room(pod.phase)) {
        const auto at = nodes_.find(state.node(pod.node).node.name);
        if (at != nodes_.end()) at->second.pods.push_back(pod.pod);
        if (pod.evicting || pod.pod.terminating) leaving_.insert(pod.pod.uid);
        if (pod.evictable_from > now) refused_.insert(pod.pod.uid);
        if (pod.phase == PodPhase::kNominated) nominated_[pod.pod.uid] = state.node(pod.node).node.name;
        if (pod.phase == PodPhase::kNominated) queue_.push_back(pod.pod);
      } else if (pod.phase == PodPhase::kPending || (pod.phase == PodPhase::kBackoff && pod.backoff_until <= now)) {
        waiting_.push_back(pod.pod);
        queue_.push_back(pod.pod);
      }
    }
    std::sort(queue_.begin(), queue_.end(), comes_before);
  }

  // What an unbounded cycle decides, in order. Each pod that came nominated is looked at once.
  std::vector<Action> decide_all() {
    std::set<std::string> followed;
    for (size_t i = 0; i < queue_.size();) {
      const model::Pod pod = queue_[i];
      const bool acted = !nominated_.contains(pod.uid)     ? take_turn(pod)
                         : followed.insert(pod.uid).second ? follow(pod)
                                                           : false;
      i = acted ? 0 : i + 1;  // it may be what one before it looks for
    }
    return actions_;
  }

  const std::vector<model::Pod>& waiting() const { return waiting_; }

  // kube-scheduler's text for a pod that fits nowhere, and cannot make room.
  std::string message(const model::Pod& pod) {
    if (nodes_.empty()) return "no nodes available to schedule pods";
    std::map<std::string, int> counts, after;
    for (auto& [name, place] : nodes_) {
      bool helps = true;
      for (const std::string& reason : why_not(pod, place, &helps)) ++counts[reason];
      std::vector<std::string> reasons;
      if (!helps) reasons = {"Preemption is not helpful for scheduling"};
      else if (lower_pods(pod, place).empty()) reasons = {"No preemption victims found for incoming pod"};
      else make_plan(pod, place, &reasons);
      for (const std::string& reason : reasons) ++after[reason];
    }
    const std::string tail =
        pod.preempts ? unavailable(nodes_.size(), after) : "not eligible due to preemptionPolicy=Never.";
    return unavailable(nodes_.size(), counts) + " no new claims to deallocate, preemption: " + tail;
  }
  // Whether it fits somewhere, or could make room.
  bool has_hope(const model::Pod& pod) {
    for (auto& [name, place] : nodes_) {
      bool helps = true;
      if (why_not(pod, place, &helps).empty()) return true;
      if (pod.preempts && helps && !lower_pods(pod, place).empty() && make_plan(pod, place, nullptr)) return true;
    }
    return false;
  }

 private:
  using Place = BruteForcePeers::Place;

  // ---- preemption

  // Pods that may leave for this one, the most important first.
  std::vector<model::Pod> lower_pods(const model::Pod& pod, const Place& place) const {
    std::vector<model::Pod> out;
    for (const model::Pod& other : place.pods) {
      const bool is_protected = !other.preemptible && protecting_namespaces_.contains(other.namespace_name);
      const bool stays = !nominated_.contains(other.uid) && !leaving_.contains(other.uid) &&
                         (is_protected || refused_.contains(other.uid));
      if (other.priority < pod.priority && !stays) out.push_back(other);
    }
    std::sort(out.begin(), out.end(), more_important);
    return out;
  }

  std::optional<BruteForcePlan> make_plan(const model::Pod& pod, Place& place, std::vector<std::string>* reasons) {
    const std::vector<model::Pod> before = place.pods, lower = lower_pods(pod, place);
    for (const model::Pod& other : lower) remove(place, other.uid);
    std::optional<BruteForcePlan> plan;
    if (const auto reason = why_not(pod, place); reason.empty()) plan = reprieve(pod, place, lower);
    else if (reasons != nullptr) *reasons = reason;
    place.pods = before;
    return plan;
  }

  BruteForcePlan reprieve(const model::Pod& pod, Place& place, const std::vector<model::Pod>& lower) {
    std::map<std::string, int> used;  // by budget
    std::set<std::string> spoken_for, gone;
    for (const model::Pod& other : lower) {
      for (const model::DisruptionBudget& budget : budgets_)
        if (budget.namespace_name == other.namespace_name &&
            budget.pods.matches(other.labels ? *other.labels : model::Labels{}) &&
            ++used[budget.key()] > budget.allowed)
          spoken_for.insert(other.uid);
    }
    BruteForcePlan plan;
    for (const bool first : {true, false})
      for (const model::Pod& other : lower) {
        if (spoken_for.contains(other.uid) != first) continue;
        place.pods.push_back(other);
        if (why_not(pod, place).empty()) continue;
        place.pods.pop_back();
        gone.insert(other.uid);
        plan.violations += first ? 1 : 0;
      }
    for (const model::Pod& other : lower)
      if (gone.contains(other.uid)) (nominated_.contains(other.uid) ? plan.displaced : plan.victims).push_back(other);
    return plan;
  }

  void bind(const model::Pod& pod, Place& place) {
    place.pods.push_back(pod);
    actions_.push_back(pod.uid + "->" + place.node.name);
    std::erase_if(queue_, [&](const model::Pod& other) { return other.uid == pod.uid; });
  }

  // The best node, or room made on one. False: neither.
  bool take_turn(const model::Pod& pod) {
    std::vector<Place*> fitting;  // by name: the first of equal ones stays
    for (auto& [name, place] : nodes_)
      if (why_not(pod, place).empty()) fitting.push_back(&place);
    if (!fitting.empty()) {
      const auto scores = brute_force_scores(pod, fitting, policies_, peers_, gathering_);
      return bind(pod, *fitting[static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin())]),
             true;
    }
    Place* best = nullptr;
    std::optional<BruteForcePlan> plan;
    for (auto& [name, place] : nodes_) {
      bool helps = true;
      why_not(pod, place, &helps);
      if (!pod.preempts || !helps || lower_pods(pod, place).empty()) continue;
      const std::optional<BruteForcePlan> found = make_plan(pod, place, nullptr);
      if (found && (!plan || found->cost() < plan->cost())) plan = found, best = &place;
    }
    if (plan) make_room(pod, *best, *plan);
    return plan.has_value();
  }

  // Nominated for the place, and after this pod in the queue; the most important first.
  std::vector<model::Pod> lesser_nominees(const model::Pod& pod, const Place& place) const {
    std::vector<model::Pod> out;
    for (const model::Pod& other : place.pods)
      if (nominated_.contains(other.uid) && comes_before(pod, other)) out.push_back(other);
    std::sort(out.begin(), out.end(), more_important);
    return out;
  }

  // Takes those of lower priority off the place that are leaving it; whether there are any.
  bool let_leave(const model::Pod& pod, Place& place) {
    const size_t before = place.pods.size();
    for (const model::Pod& other : lower_pods(pod, place))
      if (leaving_.contains(other.uid)) remove(place, other.uid);
    return place.pods.size() < before;
  }

  // There is no room now, and will be for it and all that are nominated when those that are leaving have left.
  bool needs_only_time(const model::Pod& pod, Place& place) {
    if (BruteForceFit::why_not_alone(pod, place).empty()) return false;
    const std::vector<model::Pod> before = place.pods;
    const bool room = let_leave(pod, place) && BruteForceFit::why_not_alone(pod, place).empty();
    place.pods = before;
    return room;
  }

  // On a place where it is not counted, without those nominated pods that are in its way and come after it; those of
  // its own priority only if there is no room for all of them later.
  bool start(const model::Pod& pod, Place& place) {
    const std::vector<model::Pod> before = place.pods;
    std::vector<model::Pod> removed;
    for (const bool lower : {true, false}) {
      if (why_not(pod, place).empty()) break;
      std::vector<model::Pod> next;
      for (const model::Pod& other : lesser_nominees(pod, place))
        if ((other.priority < pod.priority) == lower) next.push_back(other);
      if (!lower && !next.empty() && needs_only_time(pod, place)) return place.pods = before, false;
      for (const model::Pod& other : next) remove(place, other.uid);
      removed.insert(removed.begin(), next.begin(), next.end());
    }
    if (!why_not(pod, place).empty()) return place.pods = before, false;
    for (const model::Pod& other : removed) {
      place.pods.push_back(other);
      if (why_not(pod, place).empty()) continue;
      place.pods.pop_back();
      nominated_.erase(other.uid);
    }
    return bind(pod, place), true;
  }

  // The same, without all nominations that come after it, on whatever node.
  bool start_anyhow(const model::Pod& pod, Place& place) {
    std::vector<std::pair<model::Pod, Place*>> lesser;
    for (const model::Pod& other : queue_)
      if (nominated_.contains(other.uid) && nodes_.contains(nominated_.at(other.uid)) && comes_before(pod, other))
        lesser.emplace_back(other, &nodes_.at(nominated_.at(other.uid)));
    for (const auto& [other, home] : lesser) remove(*home, other.uid);
    const bool fits = why_not(pod, place).empty();
    for (const auto& [other, home] : lesser) {
      home->pods.push_back(other);
      if (!fits || why_not(pod, place).empty()) continue;
      home->pods.pop_back();
      nominated_.erase(other.uid);
    }
    if (fits) bind(pod, place);
    return fits;
  }

  void make_room(const model::Pod& pod, Place& place, const BruteForcePlan& plan) {
    if (start(pod, place)) return;
    for (const model::Pod& other : plan.displaced) remove(place, other.uid), nominated_.erase(other.uid);
    for (const model::Pod& victim : plan.victims)
      if (leaving_.insert(victim.uid).second) actions_.push_back(victim.uid + " leaves " + place.node.name);
    actions_.push_back(pod.uid + " nominated for " + place.node.name);
    place.pods.push_back(pod);
    nominated_[pod.uid] = place.node.name;
    new_nominees_.insert(pod.uid);
  }

  // A nominated pod. True: something changed.
  bool follow(const model::Pod& pod) {
    if (new_nominees_.contains(pod.uid)) return false;
    const auto at = nodes_.find(nominated_.at(pod.uid));
    const auto fits_somewhere = [&] {
      return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& n) { return why_not(pod, n.second).empty(); });
    };
    bool elsewhere = fits_somewhere();  // as if it ran where it is nominated
    if (at != nodes_.end()) {
      Place& place = at->second;
      remove(place, pod.uid);
      elsewhere = elsewhere && fits_somewhere();  // and as if it did not, which it will not any more
      if (why_not(pod, place).empty()) return nominated_.erase(pod.uid), bind(pod, place), true;
      if (elsewhere) return nominated_.erase(pod.uid), true;
      if (start(pod, place)) return nominated_.erase(pod.uid), true;
      const std::vector<model::Pod> before = place.pods;
      const bool some = let_leave(pod, place);
      for (const model::Pod& other : lesser_nominees(pod, place)) remove(place, other.uid);
      const bool promised =
          some && BruteForceFit::why_not_alone(pod, place).empty();  // whatever inter-pod terms say meanwhile
      place.pods = before;
      if (promised) return place.pods.push_back(pod), false;
      if (start_anyhow(pod, place)) return nominated_.erase(pod.uid), true;
    }
    nominated_.erase(pod.uid);
    gathering_.add_again(pod);
    return true;
  }

  // `helps`: whether taking pods away from the node could change it.
  std::vector<std::string> why_not(const model::Pod& pod, const Place& place, bool* helps = nullptr) const {
    std::vector<std::string> out = BruteForceFit::why_not_alone(pod, place);
    if (const std::string peers = out.empty() ? peers_.why_not(pod, place.node) : ""; !peers.empty()) out = {peers};
    if (helps != nullptr) *helps = preemption_helps(pod, place.node, out);
    return out;
  }
  PolicySet policies_;
  std::vector<model::DisruptionBudget> budgets_;
  std::set<std::string> protecting_namespaces_;
  std::map<std::string, Place> nodes_;
  BruteForcePeers peers_;
  BruteForceGathering gathering_{nodes_, peers_};
  std::vector<model::Pod> waiting_;               // neither placed nor nominated
  std::vector<model::Pod> queue_;                 // the waiting and the nominated, in order
  std::map<std::string, std::string> nominated_;  // by UID, the node
  std::set<std::string> new_nominees_;            // of this very cycle
  std::set<std::string> leaving_, refused_;       // UIDs of placed pods
  std::vector<Action> actions_;
};

}  // namespace berth::engine::testing
