// Keeps pods near the pods that their affinity names and away from those that anti-affinity names, theirs or that of
// pods already placed; preferences of both sides add up to a score.
// Source: kube-scheduler's InterPodAffinity plugin.
#include "engine/policy.h"
#include "engine/state.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

// "zone=a", the domain in which a term is asked about.
std::string domain_text(const State& state, const GroupFacts& facts, TopologyKeyId key) {
  for (const DomainId domain : *facts.domains)
    if (domain.valid() && state.topology().key_of(domain) == key)
      return state.topology().key(key) + "=" + state.topology().value(domain);
  return state.topology().key(key);
}

std::string pods_text(const State& state, TermId term) {
  std::string out;
  for (const model::PeerSelector& part : state.peers().selector(state.peers().term(term).selector).all_of)
    out += (out.empty() ? "" : " and ") + to_string(part.pods);
  return out;
}

std::string affinity_detail(const PodClass& pod, const State& state, const GroupFacts& facts, const Reason&) {
  std::string keys;
  for (const TermId term : pod.peers.affinity)
    keys += (keys.empty() ? "" : ", ") + domain_text(state, facts, state.peers().term(term).key);
  if (facts.lacks_affinity_key) return "the node lacks a topology label of the pod's affinity (" + keys + ")";
  return "no pod with " + pods_text(state, pod.peers.affinity.front()) + " runs in " + keys;
}

std::string anti_affinity_detail(const PodClass&, const State& state, const GroupFacts& facts, const Reason&) {
  const TermId term = facts.anti_affinity;
  return "a pod with " + pods_text(state, term) + " runs in " + domain_text(state, facts, state.peers().term(term).key);
}

std::string existing_detail(const PodClass&, const State& state, const GroupFacts& facts, const Reason&) {
  const TermId term = facts.existing;
  return "a pod in " + domain_text(state, facts, state.peers().term(term).key) + " keeps pods with " +
         pods_text(state, term) + " away";
}

constexpr ReasonInfo kAffinity{.text = "node(s) didn't match pod affinity rules", .group_detail = &affinity_detail};
constexpr ReasonInfo kAntiAffinity{.text = "node(s) didn't match pod anti-affinity rules",
                                   .preemption_helps = true,
                                   .group_detail = &anti_affinity_detail};
constexpr ReasonInfo kExisting{.text = "node(s) didn't satisfy existing pods anti-affinity rules",
                               .preemption_helps = true,
                               .group_detail = &existing_detail};

void filter(const PodClass& pod, const GroupFacts& facts, Reasons& reasons) {
  // The first of pods that want to be near one another has nobody to be near.
  const bool first_of_its_kind = !facts.affinity_anywhere && pod.peers.matches_own_affinity;
  if (facts.lacks_affinity_key || (!facts.affinity && !first_of_its_kind))
    return reasons.push_back({&kAffinity, {}, 0});
  if (facts.anti_affinity.valid()) return reasons.push_back({&kAntiAffinity, {}, 0});
  if (facts.existing.valid()) reasons.push_back({&kExisting, {}, 0});
}

int64_t score(const PodClass&, const GroupFacts& facts) { return facts.weight; }

}  // namespace

extern const PolicyInfo kInterPodAffinity =
    group_policy("inter-pod-affinity", "keeps pods near those their affinity names, away from those of anti-affinity",
                 120, &filter, 2, &score);

}  // namespace berth::policy
