#include "engine/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "engine/queued_workloads.h"

namespace berth::engine {
namespace {

// Adds a share to what its node's devices hold, and to the use of the resource: one for each device that is open.
void sum_share(const NodeState& node, const DeviceUse& share, std::map<int32_t, int64_t>& devices,
               std::vector<Int128>& used) {
  if (share.device < 0) {
    used[node.share_resource.value] += share.amount;
    return;
  }
  int64_t& taken = devices[share.device];
  if (taken == 0) used[node.share_resource.value] += 1;
  taken += share.amount;
}

// Invariants 1 and 2 of State: what a node counts as used is the sum over the pods that are charged to it.
void check_accounts(const State& state, std::vector<std::string>& broken) {
  std::map<uint32_t, std::vector<Int128>> sums;
  std::map<uint32_t, std::map<int32_t, int64_t>> devices;
  std::map<std::pair<uint32_t, int64_t>, int64_t> replicas;  // by node and how many, of shares
  std::map<uint32_t, model::DeviceSet> whole;
  std::map<uint32_t, uint32_t> working;
  for (const PodSlot slot : state.pods()) {
    const PodState& pod = state.pod(slot);
    if (!holds_room(pod.phase)) continue;
    auto& sum = sums[pod.node.value];
    sum.resize(state.resources().size(), 0);
    for (const ResourceAmount& request : state.pod_class(pod.cls).requests) sum[request.id.value] += request.amount;
    if (pod.devices.amount > 0) sum_share(state.node(pod.node), pod.devices, devices[pod.node.value], sum);
    if (pod.devices.replicas > 0) ++replicas[{pod.node.value, pod.devices.replicas}];
    whole[pod.node.value] |= pod.devices.whole;
    working[pod.node.value] += pod.pod.daemon ? 0 : 1;
    const auto& listed = state.node(pod.node).pods;
    if (pod.index_on_node >= listed.size() || listed[pod.index_on_node] != slot)
      broken.push_back(fmt::format("pod {} is charged to a node that does not list it", pod.pod.full_name()));
  }
  for (const auto& [slot, taken] : devices) {
    const NodeState& node = state.node(NodeSlot{slot});
    for (const auto& [device, units] : taken)
      if (units != node.devices.used(device))
        broken.push_back(fmt::format("device {} of node {} counts {} as shared, its pods have {}", device,
                                     node.node.name, node.devices.used(device), units));
  }
  for (const auto& [key, shares] : replicas) {
    const NodeState& node = state.node(NodeSlot{key.first});
    if (const int64_t counted = node.devices.replicas().count(key.second); counted != shares)
      broken.push_back(fmt::format("node {} counts {} shares of {} replicas, its pods have {}", node.node.name, counted,
                                   key.second, shares));
  }
  for (const auto& [name, slot] : state.nodes_by_name()) {
    if (whole[slot.value] != state.node(slot).listed.taken())
      broken.push_back(fmt::format("node {} counts its whole devices wrongly", name));
    if (working[slot.value] != state.node(slot).working_pods)
      broken.push_back(fmt::format("node {} counts its working pods wrongly", name));
    auto& sum = sums[slot.value];
    if (const model::DeviceSet strangers = state.node(slot).listed.strangers(); strangers != 0) {
      sum.resize(state.resources().size(), 0);
      sum[state.node(slot).share_resource.value] += std::popcount(strangers);
    }
    for (const auto& [id, amount] : state.node(slot).stranger_instances) {
      sum.resize(state.resources().size(), 0);
      sum[id.value] += amount;
    }
    for (uint32_t id = 0; id < state.resources().size(); ++id) {
      const auto expected = static_cast<int64_t>(std::min<Int128>(id < sum.size() ? sum[id] : 0, kMaxAmount));
      const int64_t actual = state.view(slot).used(ResourceId{id});
      if (expected != actual)
        broken.push_back(fmt::format("node {} counts {} {} as used, its pods ask for {}", name, actual,
                                     state.resources().name(ResourceId{id}), expected));
    }
  }
}

// What a node counts as promised, and as about to leave, is the sum over its pods.
void check_promises(const State& state, std::vector<std::string>& broken) {
  for (const auto& [name, slot] : state.nodes_by_name()) {
    const NodeState& node = state.node(slot);
    Promises promises;
    std::set<int32_t> now, later, open;
    for (const PodSlot on_node : node.pods) {
      const PodState& pod = state.pod(on_node);
      promises.count(pod, state.pod_class(pod.cls).requests, +1);
      if (pod.devices.device < 0) continue;
      open.insert(pod.devices.device);
      if (holder_of(pod) != ShareHolder::kPromised) now.insert(pod.devices.device);
      if (holder_of(pod) != ShareHolder::kLeaves) later.insert(pod.devices.device);
    }
    bool wrong = promises.awaited() != node.promises.awaited() || promises.shares() != node.promises.shares();
    for (ResourceId id{0}; id.value < state.resources().size(); ++id.value)
      wrong |= promises.promised(id) != node.promises.promised(id) || promises.leaving(id) != node.promises.leaving(id);
    if (wrong) broken.push_back(fmt::format("node {} counts wrongly what is promised there", name));
    const std::tuple devices(node.devices.count_open(), node.devices.count_promised(), node.devices.count_later());
    if (devices != std::tuple(std::ssize(open), std::ssize(open) - std::ssize(now), std::ssize(later)))
      broken.push_back(fmt::format("node {} counts its shared devices wrongly", name));
  }
}

// What VolumeState counts and has chosen agrees with the pods that have a place.
void check_volumes(const State& state, std::vector<std::string>& broken) {
  std::map<std::string, std::map<uint32_t, uint32_t>> users;
  for (const PodSlot slot : state.pods()) {
    const PodState& pod = state.pod(slot);
    if (!holds_room(pod.phase)) continue;
    for (const model::ClaimUse& use : pod.pod.spec->claims) ++users[use.claim][pod.node.value];
  }
  std::map<std::string, std::string> chosen;
  for (const auto& [key, claim] : state.volumes().claims()) {
    std::map<uint32_t, uint32_t> counted;
    for (const auto& [node, pods] : claim->used_on) counted[node.value] = pods;
    if (counted != users[key]) broken.push_back(fmt::format("claim {} counts its users wrongly", key));
    if (!claim->choice) continue;
    if (counted.empty()) broken.push_back(fmt::format("claim {} has a choice and no user", key));
    const std::string& volume = claim->choice->volume;
    if (!volume.empty() && !chosen.emplace(volume, key).second)
      broken.push_back(fmt::format("volume {} is chosen for {} and {}", volume, chosen[volume], key));
  }
}

void check_order(const State& state, std::vector<std::string>& broken) {
  uint64_t last = 0;
  for (const auto& [name, slot] : state.nodes_by_name()) {
    if (state.node(slot).order <= last) broken.push_back(fmt::format("node {} is out of order", name));
    last = state.node(slot).order;
  }
}

// What each term counts in each domain is the sum over the pods that are placed there.
void check_peers(const State& state, std::vector<std::string>& broken) {
  const PeerIndex& peers = state.peers();
  std::map<std::pair<uint32_t, uint32_t>, Term::Count> sums;
  for (const PodSlot slot : state.pods()) {
    const PodState& pod = state.pod(slot);
    const Identity& identity = peers.identity(pod.identity);
    if (identity.pods.at(pod.index_in_identity) != slot)
      broken.push_back(fmt::format("pod {} is not listed under its identity", pod.pod.full_name()));
    if (state.pod_class(pod.cls).seen_by != identity.matches)
      broken.push_back(fmt::format("pod {} is in a class for other selectors", pod.pod.full_name()));
    if (!holds_room(pod.phase)) continue;
    const NodeDomains& domains = state.node(pod.node).domains;
    const auto sum = [&](TermId term) -> Term::Count& {
      return sums[{term.value, domain_of(domains, peers.term(term).key).value}];
    };
    for (const SelectorId selector : identity.matches)
      for (const TermId term : peers.selector(selector).terms) ++sum(term).matching;
    for (const OwnedTerm& owned : state.pod_class(pod.cls).peers.owned) {
      sum(owned.term).anti_owners += owned.anti;
      sum(owned.term).weight += owned.weight;
    }
  }
  for (uint32_t id = 0; id < peers.term_slots(); ++id)
    for (const auto& [domain, count] : peers.term(TermId{id}).counts)
      if (const auto at = sums.find({id, domain.value}); at == sums.end() || !(at->second == count))
        broken.push_back(fmt::format("a term counts {} pods in {}, which hold otherwise", count.matching,
                                     state.topology().value(domain)));
  for (const auto& [key, count] : sums)
    if (DomainId{key.second}.valid() && !(peers.term(TermId{key.first}).at(DomainId{key.second}) == count))
      broken.push_back("a term misses pods that are placed in its domains");
}

}  // namespace

std::vector<std::string> broken_invariants(const Engine& engine) {
  std::vector<std::string> broken;
  const State& state = engine.state_;
  check_accounts(state, broken);
  check_promises(state, broken);
  check_order(state, broken);
  check_peers(state, broken);
  check_volumes(state, broken);
  size_t queued = 0;
  for (const PodSlot slot : state.pods()) {
    const PodState& pod = state.pod(slot);
    const ClassQueue* cls = engine.queue_.find(pod.cls);
    const bool listed = cls != nullptr && cls->pods.contains(slot);
    queued += listed;
    const bool waits = engine.waits(pod.pod) && !engine.arrivals_.contains(pod.pod.uid);
    if (waits && pod.phase == PodPhase::kNotQueued)  // I4
      broken.push_back(fmt::format("pod {} waits but is neither queued nor backing off", pod.pod.full_name()));
    if (listed != (pod.phase == PodPhase::kPending))
      broken.push_back(fmt::format("pod {} is {} but {}", pod.pod.full_name(), to_string(pod.phase),
                                   listed ? "queued" : "not queued"));
    if ((pod.phase == PodPhase::kNominated && !pod.pod.stand_in) != engine.nominees_.contains(slot))
      broken.push_back(
          fmt::format("pod {} is {}, but its nomination says otherwise", pod.pod.full_name(), to_string(pod.phase)));
    if ((pod.phase == PodPhase::kBackoff) != engine.backoff_.contains({pod.backoff_until, pod.pod.uid}) &&
        pod.phase == PodPhase::kBackoff)
      broken.push_back(fmt::format("pod {} backs off without an end", pod.pod.full_name()));
  }
  if (queued != engine.queue_.size()) broken.push_back("the queue holds pods that do not exist");
  engine.workloads_->check(broken);
  return broken;
}

}  // namespace berth::engine
