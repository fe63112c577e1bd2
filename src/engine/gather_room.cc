#include "engine/gather_room.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/evaluate.h"

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

}  // namespace

int64_t pods_that_fit(const NodeView& node, const PodClass& cls) {
  int64_t pods = cls.shares_gpu ? shares_that_fit(node, cls) : INT32_MAX;
  for (const ResourceAmount& request : cls.requests) pods = std::min(pods, node.free(request.id) / request.amount);
  return std::max<int64_t>(pods, 1);
}

GatherRoom::GatherRoom(const GroupShape& shape, const State& state, const PodClass& cls) {
  for (const GroupShape::Key& key : shape.keys)
    if (key.gathers) keys_.push_back(key.key);
  for (const TermId term : cls.peers.anti_affinity) {
    const bool own = std::ranges::binary_search(cls.seen_by, state.peers().term(term).selector);
    const bool known = std::ranges::any_of(
        shape.keys, [&](const GroupShape::Key& key) { return key.key == state.peers().term(term).key; });
    if (own && known && !apart_key_.valid()) apart_key_ = state.peers().term(term).key;
  }
}

void GatherRoom::mark(NodeSlot slot) {
  if (active_) dirty_.push_back(slot);
}

// By class, its own first. Empty: some pod has a place.
std::vector<GatherRoom::Demand> GatherRoom::demand_of(const State& state, const PodClass& cls) const {
  const PeerIndex& peers = state.peers();
  const auto placed = [&](TermId term) { return peers.term(term).matching_domains > 0; };
  if (std::ranges::any_of(cls.peers.gathering, placed)) return {};
  std::map<ClassId, int64_t> others;
  int64_t own = 0;
  for (const IdentityId identity : peers.selector(peers.term(cls.peers.gathering.front()).selector).identities)
    for (const PodSlot pod : peers.identity(identity).pods) {
      if (holds_room(state.pod(pod).phase) || state.pod(pod).pod.keeps_class) continue;
      const ClassId id = state.pod(pod).cls;
      ++(&state.pod_class(id) == &cls ? own : others[id]);
    }
  std::vector<Demand> out{{ClassId{}, cls.serial, cls.generation, own > 0 ? own : int64_t{cls.pods}}};
  for (const auto& [id, pods] : others)
    if (out.size() < kClassesMax) out.push_back({id, state.pod_class(id).serial, state.pod_class(id).generation, pods});
  return out;
}

// From now on the sums are of these; every node is to be looked at.
void GatherRoom::start(const State& state, const PodClass& cls, std::vector<Demand> demand) {
  demand_ = std::move(demand);
  active_ = !demand_.empty();
  for (auto& [domain, sum] : sums_) sum = {{}, 0, {}, sum.worth};
  apart_.clear();
  parts_.assign(active_ ? state.node_slots() : 0, {});
  dirty_.clear();
  wanted_.clear();
  std::map<ResourceId, Int128> wanted;
  for (const Demand& each : demand_)
    for (const ResourceAmount& request : (each.cls.valid() ? state.pod_class(each.cls) : cls).requests)
      wanted[request.id] += 0;
  wanted_.assign(wanted.begin(), wanted.end());
  for (uint32_t slot = 0; active_ && slot < state.node_slots(); ++slot) dirty_.push_back(NodeSlot{slot});
}

GatherRoom::Part GatherRoom::part_of(NodeSlot slot, const State& state, const PolicySet& policies, const PodClass& cls,
                                     bool own_fits) const {
  Part out;
  if (!state.node(slot).present) return out;
  const NodeDomains& domains = state.node(slot).domains;
  for (const TopologyKeyId key : keys_)
    if (const DomainId domain = domain_of(domains, key); domain.valid()) out.domains.push_back(domain);
  if (apart_key_.valid()) out.apart = domain_of(domains, apart_key_);
  const NodeView view = state.view(slot);
  Reasons reasons;
  for (const Demand& each : demand_) {
    const PodClass& asked = each.cls.valid() ? state.pod_class(each.cls) : cls;
    reasons.clear();
    const bool fits = each.cls.valid() ? run_filters(policies, asked, view, reasons) : own_fits;
    out.pods.push_back(fits ? pods_that_fit(view, asked) : 0);
  }
  const bool any = std::ranges::any_of(out.pods, [](int64_t pods) { return pods > 0; });
  for (const auto& [resource, wanted] : wanted_)
    out.free.push_back(any ? std::max<int64_t>(0, view.free(resource)) : 0);
  return out;
}

void GatherRoom::add(const Part& part, int64_t sign, absl::btree_set<DomainId>& changed) {
  for (const DomainId domain : part.domains) {
    Sum& sum = sums_[domain];
    sum.pods.resize(demand_.size());
    sum.free.resize(wanted_.size());
    for (size_t i = 0; i < part.free.size(); ++i) sum.free[i] += Int128{sign} * part.free[i];
    changed.insert(domain);
    const int64_t all = std::accumulate(part.pods.begin(), part.pods.end(), int64_t{0});
    if (!part.apart.valid()) {
      for (size_t i = 0; i < part.pods.size(); ++i) sum.pods[i] += sign * part.pods[i];
      sum.slots += sign * all;
      continue;
    }
    std::vector<int64_t>& here = apart_[{part.apart, domain}];
    here.resize(demand_.size() + 1);
    const auto count = [&](int64_t& of, int64_t more, int64_t& total) {
      total -= std::min<int64_t>(of, 1);
      of += sign * more;
      total += std::min<int64_t>(of, 1);
    };
    for (size_t i = 0; i < part.pods.size(); ++i) count(here[i], part.pods[i], sum.pods[i]);
    count(here.back(), all > 0 ? 1 : 0, sum.slots);
  }
}

int64_t GatherRoom::worth_of(const Sum& sum) const {
  constexpr int64_t kWhole = 4;
  int64_t total = 0, places = 0;
  for (size_t i = 0; i < sum.pods.size(); ++i) {
    total += demand_[i].pods;
    places += std::min(sum.pods[i], demand_[i].pods);
  }
  if (apart_key_.valid()) places = std::min(places, sum.slots);
  for (size_t i = 0; i < sum.free.size(); ++i)
    if (sum.free[i] < wanted_[i].second)
      places = std::min(places, static_cast<int64_t>(Int128{total} * sum.free[i] / wanted_[i].second));
  return places == total ? kWhole * places : places;
}

std::vector<DomainId> GatherRoom::settle(const State& state, const PolicySet& policies, const PodClass& cls,
                                         const std::function<bool(NodeSlot)>& fits) {
  std::vector<DomainId> out;
  if (keys_.empty()) return out;
  std::vector<Demand> demand = demand_of(state, cls);
  const bool same_classes = std::ranges::equal(demand, demand_, [](const Demand& a, const Demand& b) {
    return a.cls == b.cls && a.serial == b.serial && a.generation == b.generation;
  });
  absl::btree_set<DomainId> changed;
  const bool same_pods = same_classes && std::ranges::equal(demand, demand_, {}, &Demand::pods, &Demand::pods);
  if (same_classes) demand_ = std::move(demand);
  else start(state, cls, std::move(demand));
  if (!same_pods) {
    for (auto& [resource, wanted] : wanted_) wanted = 0;
    for (const Demand& each : demand_)
      for (const ResourceAmount& request : (each.cls.valid() ? state.pod_class(each.cls) : cls).requests)
        std::ranges::find(wanted_, request.id, &std::pair<ResourceId, Int128>::first)->second +=
            Int128{request.amount} * each.pods;
    for (const auto& [domain, sum] : sums_) changed.insert(domain);
  }
  if (parts_.size() < state.node_slots() && active_) parts_.resize(state.node_slots());
  for (const NodeSlot slot : dirty_) {
    add(parts_[slot.value], -1, changed);
    parts_[slot.value] = part_of(slot, state, policies, cls, fits(slot));
    add(parts_[slot.value], +1, changed);
  }
  dirty_.clear();
  for (const DomainId domain : changed) {
    Sum& sum = sums_[domain];
    const int64_t worth = worth_of(sum);
    if (std::exchange(sum.worth, worth) != worth) out.push_back(domain);
  }
  if (!active_) sums_.clear();
  return out;
}

int64_t GatherRoom::worth(DomainId domain) const {
  const auto at = sums_.find(domain);
  return at == sums_.end() ? 0 : at->second.worth;
}

}  // namespace berth::engine
