// Victims: who has to leave a node so that a pod of a class fits there.
//
// A dry run in a Trial: all pods of lower priority leave, and if the class then fits, they come back one by one,
// the most important first and those that a disruption budget speaks for before the others, as long as it still fits.
// Who could not come back is a victim. A pod that is leaving already counts as a victim, too, since nobody knows how
// long it takes; a nominated pod loses its nomination, which costs nothing.
//
// It costs what the pods of the node ask for, whatever else there is: filters that look at the node object alone are
// asked once, and group filters again only about pods on whom a verdict can depend (Groups::count_gone()).
// Source: kube-scheduler's DefaultPreemption plugin (SelectVictimsOnNode, pickOneNodeForPreemption).
#pragma once

#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "engine/disruption_rules.h"
#include "engine/failure_sets.h"
#include "engine/groups.h"
#include "engine/policy_set.h"
#include "engine/residents.h"
#include "engine/trial.h"

namespace berth::engine {

// What a plan costs; the least is chosen.
struct PlanCost {
  uint32_t violations = 0;      // of disruption budgets
  uint32_t victims = 0;         //
  int64_t highest = INT64_MIN;  // priority of the most important victim; INT64_MIN without victims
  int64_t priorities = 0;       // sum of (priority + 2^31), so that each victim counts
  int64_t started = INT64_MIN;  // minus the earliest start among the victims of the highest priority
  auto key() const { return std::tie(violations, highest, priorities, victims, started); }
  friend bool operator<(const PlanCost& a, const PlanCost& b) { return a.key() < b.key(); }
};

struct VictimPlan {
  std::vector<PodSlot> victims;    // the most important first
  std::vector<PodSlot> displaced;  // nominated for the node
};

class VictimSearch {
 public:
  struct Context {
    State& state;
    const PolicySet& policies;
    DisruptionRules& rules;
    Residents& residents;
    Time now;
  };
  // `groups` is null or that of the class's candidates. All outlive the search.
  VictimSearch(const Context& context, const PodClass& cls, const Groups* groups)
      : state_(context.state),
        policies_(context.policies),
        rules_(context.rules),
        residents_(context.residents),
        now_(context.now),
        cls_(cls),
        groups_(groups) {}

  enum class Outcome : uint8_t {
    kNobody,    // no pod on the node is less important than the class, and may go
    kHopeless,  // the class would not fit even without them
    kPlan,
  };
  // What the plan for the node costs. The class's candidates are up to date.
  Outcome price(NodeSlot node, PlanCost& cost);
  // The same, and who leaves.
  Outcome find(NodeSlot node, VictimPlan& plan);
  // After kHopeless: why.
  FailureSetId why_not(FailureSets& sets) const;
  // Whether the outcome depended on pods of other nodes, in more than that the class's groups tell of the node.
  bool looked_around() const { return looked_around_; }

  // What a nominated pod of the class can expect of its node, itself not counted. Nominated pods that come after it in
  // the queue's order keep nothing from it; `displaced` are those of them that lose their nominations if it starts. The
  // rules are such that nominations come to rest: docs/architecture.md#nominations.
  enum class Outlook : uint8_t {
    kReady,     // it fits
    kPromised,  // pods of lower priority are leaving, and the filters of nodes would let it in without them
    kLost,      // neither
  };
  Outlook outlook(PodSlot nominee, NodeSlot node, std::vector<PodSlot>& displaced);
  // Whether `other` keeps a place for a workload that waits and comes after the pod: of two for whom room is kept on
  // one node, the first has it.
  static bool is_kept_for_later(PodSlot pod, PodSlot other, const State& state);
  // Whether a pod of the class, which may be nominated for the node itself, would fit there if all others had gone but
  // daemons, and what is kept for workloads, and pods that are nominated for it, that come before this one in the
  // queue's order.
  bool fits_when_left(PodSlot waiting, NodeSlot node);
  // When a pod of the class, which may be nominated for the node itself, would fit there: the last of the ends for
  // which it has to wait, INT64_MIN if for none. Nothing: not by the ends of those that have one.
  using EndOf = std::function<std::optional<Time>(PodSlot)>;
  std::optional<Time> free_by(PodSlot waiting, NodeSlot node, const EndOf& end_of);
  // Whom a pod nominated for the node has to send away to fit there once all that are leaving are gone: of those that
  // may be sent, the first are the first to stay. Nobody where it would not fit even without all of them.
  std::vector<PodSlot> must_leave(PodSlot waiting, NodeSlot node, const std::vector<PodSlot>& may_leave);
  // Whether a pod of the class fits on the node as it is, but for these.
  bool fits_without(NodeSlot node, const std::vector<PodSlot>& others);
  // Units of work since the last call.
  int64_t take_effort();

 private:
  bool may_go(const Resident& pod) const;
  bool is_leaving(const PodState& pod) const { return pod.pod.terminating || pod.evicting; }
  bool fits_alone(NodeSlot node);
  bool fits_groups(NodeSlot node);
  bool fits_now(NodeSlot node, bool groups_depend);
  bool fits(NodeSlot node) { return fits_alone(node) && (groups_ == nullptr || fits_groups(node)); }
  bool take_out(Trial& trial, const Residents::Table& here, const Resident& pod);
  bool put_back(Trial& trial, const Residents::Table& here, const Resident& pod);
  void reprieve(NodeSlot node, Trial& trial, const Residents::Table& here, PlanCost& cost);
  void price_victims(const Residents::Table& here, PlanCost& cost) const;

  State& state_;
  const PolicySet& policies_;
  DisruptionRules& rules_;
  Residents& residents_;
  Time now_;
  const PodClass& cls_;
  const Groups* groups_;
  std::vector<uint32_t> lower_;  // indexes into the node's Residents
  std::vector<bool> leaves_;     // of `lower_`, those that cannot come back
  Groups::Gone gone_;
  GroupFacts facts_;
  Reasons reasons_;
  FailureSetId group_failure_ = kFits;
  bool looked_around_ = false;
  int64_t tries_ = 0;
};

}  // namespace berth::engine
