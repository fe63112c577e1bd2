#include "engine/shared_domains.h"

#include <algorithm>

namespace berth::engine {

std::vector<model::SliceLayer> shared_layers(const State& state, PodSlot pod) {
  const PodClass& cls = state.pod_class(state.pod(pod).cls);
  std::vector<model::SliceLayer> out;
  if (!cls.peers.matches_own_affinity) return out;
  for (const model::PodAffinityTerm& term : cls.spec->peers.affinity)
    if (std::ranges::find(out, term.topology_key, &model::SliceLayer::key) == out.end())
      out.push_back({term.topology_key, INT32_MAX});
  return out;
}

bool stand_apart(const State& state, const PodClass& cls) {
  return std::ranges::any_of(cls.peers.anti_affinity, [&](TermId term) {
    return std::ranges::binary_search(cls.seen_by, state.peers().term(term).selector);
  });
}

}  // namespace berth::engine
