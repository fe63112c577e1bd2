// Victims: who has to leave a node so that a pod of a class fits there.
//
// A dry run on the live state, put back before it ends: all pods of lower priority leave, and if the class then fits,
// they come back one by one, the most important first and those that a disruption budget speaks for before the others,
// as long as it still fits. Who could not come back is a victim. A pod that is leaving already counts as a victim, too,
// since nobody knows how long it takes; a nominated pod loses its nomination, which costs nothing.
// Source: kube-scheduler's DefaultPreemption plugin (SelectVictimsOnNode, pickOneNodeForPreemption).
#pragma once

#include <tuple>
#include <vector>

#include "engine/disruption_rules.h"
#include "engine/groups.h"
#include "engine/policy.h"

namespace berth::engine {

// What a plan costs; the least is chosen.
struct PlanCost {
  uint32_t violations = 0;      // of disruption budgets
  int64_t highest = INT64_MIN;  // priority of the most important victim; INT64_MIN without victims
  int64_t priorities = 0;       // sum of (priority + 2^31), so that each victim counts
  uint32_t victims = 0;         //
  int64_t started = INT64_MIN;  // minus the earliest start among the victims of the highest priority
  auto key() const { return std::tie(violations, highest, priorities, victims, started); }
  friend bool operator<(const PlanCost& a, const PlanCost& b) { return a.key() < b.key(); }
};

struct VictimPlan {
  std::vector<PodSlot> victims;    // the most important first
  std::vector<PodSlot> displaced;  // nominated for the node
  PlanCost cost;
};

class VictimSearch {
 public:
  // `groups` is null or that of the class's candidates, which are up to date. All outlive the search.
  VictimSearch(State& state, const PolicySet& policies, const DisruptionRules& rules, Time now, const PodClass& cls,
               const Groups* groups)
      : state_(state), policies_(policies), rules_(rules), now_(now), cls_(cls), groups_(groups) {}

  // Whether some pod on the node is less important than the class, and may go.
  bool has_lower(NodeSlot node) const;
  // The plan for the node in `plan`. `why_not` says why there is none: the class does not fit even then.
  bool find(NodeSlot node, VictimPlan& plan, Reasons& why_not);
  // Whether the class fits on the node without `leaver`, which has room there: now, or once those pods of lower
  // priority are gone that are leaving the node, or not even then.
  enum class Outlook : uint8_t { kReady, kPromised, kLost };
  Outlook without(PodSlot leaver, NodeSlot node);
  // Pods looked at so far.
  int64_t effort() const { return effort_; }

 private:
  struct Removed {
    PodSlot pod;
    PodPhase phase = PodPhase::kBound;
    std::vector<std::pair<std::string, ClaimChoice>> choices;
  };
  bool may_go(const PodState& pod) const;
  bool is_leaving(const PodState& pod) const { return pod.pod.terminating || pod.evicting; }
  bool fits(NodeSlot node, Reasons& reasons);
  void remove(PodSlot pod);
  void put_back(PodSlot pod, NodeSlot node);
  void put_back_all(NodeSlot node);
  void reprieve(NodeSlot node, const std::vector<PodSlot>& lower, VictimPlan& plan);
  void price(VictimPlan& plan) const;

  State& state_;
  const PolicySet& policies_;
  const DisruptionRules& rules_;
  Time now_;
  const PodClass& cls_;
  const Groups* groups_;
  std::vector<Removed> removed_;
  GroupFacts facts_;
  Reasons reasons_;
  int64_t effort_ = 0;
};

}  // namespace berth::engine
