// State's hash, by which runs, replays and engines that heard the same facts are compared.
#include <algorithm>
#include <map>

#include "engine/state.h"

namespace berth::engine {
namespace {

// FNV-1a over bytes: the same on every machine and run, unlike absl::Hash.
struct StableHash {
  uint64_t value = 0xCBF29CE484222325ULL;
  void bytes(const void* data, size_t size) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) value = (value ^ p[i]) * 0x100000001B3ULL;
  }
  void number(int64_t n) { bytes(&n, sizeof n); }
  void text(const std::string& s) {
    number(static_cast<int64_t>(s.size()));
    bytes(s.data(), s.size());
  }
};

}  // namespace

uint64_t State::hash() const {
  StableHash hash;
  for (const auto& [name, slot] : nodes_by_name_) {
    const NodeState& node = nodes_[slot.value];
    hash.text(name);
    hash.number(node.present + 2 * node.repartitioning);
    std::map<std::string, std::pair<int64_t, int64_t>> amounts;  // by name: ids depend on history
    for (uint32_t id = 0; id < resources_.size(); ++id) {
      const NodeView seen = view(slot);
      const std::pair amount(seen.allocatable(ResourceId{id}), seen.used(ResourceId{id}));
      if (amount.first != 0 || amount.second != 0) amounts.emplace(resources_.name(ResourceId{id}), amount);
    }
    for (const auto& [resource, amount] : amounts) {
      hash.text(resource);
      hash.number(amount.first);
      hash.number(amount.second);
    }
  }
  std::vector<const PodState*> pods;
  for (const PodState& pod : pods_)
    if (pod.in_use && (!pod.pod.stand_in || holds_room(pod.phase))) pods.push_back(&pod);  // else it only looks
  std::sort(pods.begin(), pods.end(), [](auto* a, auto* b) { return a->pod.uid < b->pod.uid; });
  for (const PodState* pod : pods) {
    hash.text(pod->pod.uid);
    hash.number(static_cast<int64_t>(pod->phase));
    hash.text(holds_room(pod->phase) ? nodes_[pod->node.value].node.name : "");
    if (!pod->devices.none()) hash.number(pod->devices.device), hash.number(pod->devices.whole);
  }
  for (const auto& [key, claim] : volumes_.claims()) {
    if (!claim->choice) continue;
    hash.text(key);
    hash.text(claim->choice->volume);
    hash.text(claim->choice->node);
  }
  return hash.value;
}

}  // namespace berth::engine
