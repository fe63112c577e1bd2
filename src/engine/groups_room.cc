// The part of Groups that counts room in domains, for classes whose pods want to gather.
#include <algorithm>
#include <utility>

#include "engine/groups.h"

namespace berth::engine {
namespace {

// How many more of the class's shares of a GPU the node's devices have room for.
int64_t shares_that_fit(const NodeView& node, const PodClass& cls) {
  const model::NodeGpus& gpus = node.node().gpus;
  const int64_t units = gpus.units_of(cls.spec->gpu_share),
                free = std::max<int64_t>(0, node.free(node.share_resource()));
  if (units <= 0) return 0;
  if (gpus.sharing == model::GpuSharing::kReplicas) {
    const int64_t each = std::max<int64_t>(1, gpus.replicas_of(cls.spec->gpu_share));
    const int64_t replicas = std::max<int64_t>(1, gpus.replicas);
    return free / replicas * (replicas / each) + free % replicas / each;
  }
  int64_t shares = free * (gpus.units() / units);
  for (const int64_t used : node.devices().all())
    if (used > 0) shares += std::max<int64_t>(0, gpus.units() - used) / units;
  return shares;
}

// How many pods of the class the node could take by what they request, which is one at least; it fits one.
int64_t pods_that_fit(const NodeView& node, const PodClass& cls) {
  int64_t pods = cls.shares_gpu ? shares_that_fit(node, cls) : INT32_MAX;
  for (const ResourceAmount& request : cls.requests) pods = std::min(pods, node.free(request.id) / request.amount);
  return std::max<int64_t>(pods, 1);
}

}  // namespace

void Groups::update_room(NodeSlot slot, const State& state, const PodClass& cls) {
  if (!gathers_) return;
  const int64_t now = places_[slot.value].fits ? pods_that_fit(state.view(slot), cls) : 0;
  if (room_.size() <= slot.value) room_.resize(state.node_slots());
  add_room(slot, now - room_[slot.value]);
}

// Changes what the node adds to its domains.
void Groups::add_room(NodeSlot slot, int64_t pods) {
  room_[slot.value] += pods;
  const std::vector<DomainId>& domains = groups_[places_[slot.value].group.value].domains;
  for (uint32_t key = 0; key < shape_.keys.size(); ++key)
    if (shape_.keys[key].gathers && domains[key].valid()) domains_[domains[key].value].room += pods;
}

// `changed`: the domains that have more room than before, or less.
void Groups::settle_room(const std::vector<DomainId>& changed, const State& state, const PodClass& cls) {
  if (!gathers_) return;
  const auto& terms = cls.peers.gathering;
  const bool first = std::all_of(terms.begin(), terms.end(),
                                 [&](TermId term) { return state.peers().term(term).matching_domains == 0; });
  const int64_t wanted = first ? cls.pods : 0;
  const auto count = [&](DomainId id) {
    Domain& domain = domains_[id.value];
    const int64_t places = std::min(domain.room, wanted);
    if (!shape_.keys[domain.key].gathers || std::exchange(domain.places, places) == places) return;
    mark_groups(domain);
  };
  const bool others_stay = std::exchange(wanted_, wanted) == wanted;
  for (const DomainId id : changed) count(id);
  if (others_stay) return;
  for (const std::vector<DomainId>& domains : domains_of_)
    for (const DomainId id : domains) count(id);
}

}  // namespace berth::engine
