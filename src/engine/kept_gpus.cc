#include "engine/kept_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/node_without.h"

namespace berth::engine {

void KeptGpus::keep(NodeSlot node, const GpusKept& event, model::Pod stand_in) {
  auto spec = std::make_shared<model::SchedulingSpec>();
  spec->requests = event.amounts;
  stand_in.spec = std::move(spec);
  stand_in.uid = fmt::format("{}:gpus:{}", event.owner, event.node);
  stand_in.stand_in = true;
  const PodSlot slot = state_.add_pod(std::move(stand_in));
  const PodState& made = state_.pod(slot);
  if (state_.pod_class(made.cls).seen_by != state_.peers().identity(made.identity).matches) state_.reclassify(slot);
  state_.assign(slot, node, PodPhase::kNominated);
  state_.revise(slot, [](PodState& kept) { kept.node_kept = true; });
  kept_.emplace(node, Kept{event.owner, slot});
  news_.push_back(event.owner);
}

void KeptGpus::give_back(NodeSlot node) {
  const auto kept = kept_.find(node);
  if (kept == kept_.end()) return;
  state_.unassign(kept->second.stand_in, PodPhase::kNotQueued);
  state_.remove_pod(kept->second.stand_in);
  news_.push_back(kept->second.owner);
  kept_.erase(kept);
}

void KeptGpus::give_back_where(const std::function<bool(NodeSlot node, const Kept& kept)>& is_over) {
  std::vector<NodeSlot> over;
  for (const auto& [node, kept] : kept_)
    if (is_over(node, kept)) over.push_back(node);
  for (const NodeSlot node : over) give_back(node);
}

void KeptGpus::give_back_of(const std::string& owner) {
  give_back_where([&](NodeSlot, const Kept& kept) { return kept.owner == owner; });
}

bool KeptGpus::keeps_for(const std::string& owner) const {
  return std::ranges::any_of(kept_, [&](const auto& kept) { return kept.second.owner == owner; });
}

void KeptGpus::begin_cut(NodeSlot node) {
  const auto kept = kept_.find(node);
  if (kept == kept_.end()) return;
  model::Pod stand_in = state_.pod(kept->second.stand_in).pod;
  const GpusKept beside{state_.node(node).node.name, kept->second.owner,
                        asked_beside_gpus(state_, state_.pod_class(state_.pod(kept->second.stand_in).cls))};
  give_back(node);
  if (!beside.amounts.empty()) keep(node, beside, std::move(stand_in));
}

void KeptGpus::tidy(const std::function<bool(const std::string& owner)>& waits) {
  give_back_where([&](NodeSlot node, const Kept& kept) {
    const NodeState& state = state_.node(node);
    return !state.present || (!state.node.mig && !state.is_being_cut()) || !waits(kept.owner);
  });
}

}  // namespace berth::engine
