// Spreads pods over topology domains: no domain may hold more than maxSkew pods above the emptiest one (DoNotSchedule),
// or domains with fewer pods are preferred (ScheduleAnyway), the more so the more domains there are to choose from.
// Replicas without constraints of their own prefer zones with few of them, unless they pack (src/bridge/peers.cc).
// Source: kube-scheduler's PodTopologySpread plugin (KEP-895, KEP-3022, KEP-3094).
#include <fmt/format.h>

#include <bit>

#include "engine/policy.h"
#include "engine/state.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

int64_t skew(const ClassPeers::Spread& spread, const GroupFacts::Spread& facts) {
  return facts.matching + (spread.matches_self ? 1 : 0) - facts.fewest;
}

std::string detail(const PodClass& pod, const State& state, const GroupFacts& facts, const Reason& reason) {
  const ClassPeers::Spread& spread = pod.peers.spread[reason.index];
  const GroupFacts::Spread& seen = facts.spread[reason.index];
  if (!seen.in_domain) return "the node lacks label " + spread.rule->topology_key;
  std::string out = fmt::format(
      "would make a skew of {} over {}, maxSkew is {}: {} matching pod(s) here, {} in the emptiest domain",
      skew(spread, seen), state.topology().key(spread.key), spread.rule->max_skew, seen.matching, seen.fewest);
  if (seen.domains < spread.rule->min_domains)
    out += fmt::format(" (0 since {} domain(s) are fewer than minDomains {})", seen.domains, spread.rule->min_domains);
  return out;
}

constexpr ReasonInfo kSkew{
    .text = "node(s) didn't match pod topology spread constraints", .preemption_helps = true, .group_detail = &detail};
constexpr ReasonInfo kMissingLabel{
    .text = "node(s) didn't match pod topology spread constraints (missing required label)", .group_detail = &detail};

void filter(const PodClass& pod, const GroupFacts& facts, Reasons& reasons) {
  for (uint32_t i = 0; i < pod.peers.spread.size(); ++i) {
    const ClassPeers::Spread& spread = pod.peers.spread[i];
    if (!spread.rule->required) continue;
    if (!facts.spread[i].in_domain) return reasons.push_back({&kMissingLabel, {}, i});
    if (facts.spread[i].exceeds) return reasons.push_back({&kSkew, {}, i});
  }
}

int64_t score(const PodClass& pod, const GroupFacts& facts) {
  int64_t crowd = 0;
  bool wishes = false;
  for (size_t i = 0; i < pod.peers.spread.size(); ++i) {
    const model::TopologySpreadConstraint& rule = *pod.peers.spread[i].rule;
    if (rule.required) continue;
    if (!facts.spread[i].in_domain && !rule.by_default) return kNoGroupScore;
    wishes = true;
    if (!facts.spread[i].in_domain) continue;
    crowd += facts.spread[i].matching * std::bit_width(static_cast<uint64_t>(facts.spread[i].domains + 1));
  }
  return wishes ? -crowd : kNoGroupScore;
}

}  // namespace

extern const PolicyInfo kPodTopologySpread = group_policy(
    "pod-topology-spread", "spreads pods over zones, racks or nodes as their topologySpreadConstraints ask", 110,
    &filter, 2, &score);

}  // namespace berth::policy
