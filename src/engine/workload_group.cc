#include "engine/workload_group.h"

#include <algorithm>
#include <set>

namespace berth::engine {
namespace {

int32_t index_of(const std::vector<WorkloadGroup::Member>& members, const std::string& uid) {
  const auto at = std::ranges::find(members, uid, &WorkloadGroup::Member::uid);
  return at == members.end() ? -1 : static_cast<int32_t>(at - members.begin());
}

}  // namespace

const PodLooks& WorkloadGroup::Set::looks_of(int32_t number) const {
  return number >= 0 && number < std::ssize(members) ? members[static_cast<size_t>(number)].looks : looks;
}

bool WorkloadGroup::Set::awaits(int32_t number, const State& state) const {
  return number < std::ssize(members) && state.find_pod(members[static_cast<size_t>(number)].uid).valid();
}

size_t WorkloadGroup::Set::to_spare(const State& state) const {
  const auto last = std::ranges::find_if(stand_ins.rbegin(), stand_ins.rend(),
                                         [&](const auto& each) { return !awaits(each.second, state); });
  return static_cast<size_t>((last == stand_ins.rend() ? stand_ins.rbegin() : last).base() - stand_ins.begin()) - 1;
}

std::map<std::string, int32_t> WorkloadGroup::numbers(size_t set, const std::vector<Member>& members) const {
  std::map<std::string, int32_t> out;
  auto next = static_cast<int32_t>(members.size());
  for (const auto& [uid, pod] : came)
    if (pod.set == set) {
      const int32_t own = index_of(members, uid);
      out.emplace(uid, own >= 0 ? own : next++);
    }
  return out;
}

int32_t WorkloadGroup::free_number(size_t set) const {
  std::set<int32_t> taken;
  for (const auto& [uid, pod] : came)
    if (pod.set == set) taken.insert(pod.number);
  for (const auto& [slot, number] : sets[set].stand_ins) taken.insert(number);
  int32_t out = 0;
  while (taken.contains(out)) ++out;
  return out;
}

std::optional<int32_t> WorkloadGroup::number_for(size_t set, const model::Pod& pod, const State& state) const {
  const Set& known = sets[set];
  const int32_t own = index_of(known.members, pod.uid);
  const auto stand_in =
      own >= 0
          ? std::ranges::find(known.stand_ins, own, &std::pair<PodSlot, int32_t>::second)
          : std::ranges::find_if(known.stand_ins, [&](const auto& each) { return !known.awaits(each.second, state); });
  const bool is_there = stand_in != known.stand_ins.end() && state.node(state.pod(stand_in->first).node).present;
  if (is_there) return stand_in->second;
  if (pod.node_name.empty()) return std::nullopt;
  return own >= 0 ? own : free_number(set);
}

std::vector<PodSlot> WorkloadGroup::name_members(size_t set, std::vector<Member> members) {
  Set& known = sets[set];
  std::vector<size_t> left;  // numbers of those that have gone
  for (size_t i = 0; i < known.members.size(); ++i)
    if (index_of(members, known.members[i].uid) < 0) left.push_back(i);
  std::set<int32_t> stale;
  for (Member& member : members) {
    if (index_of(known.members, member.uid) >= 0) continue;  // a place may have been found for it as it was then
    auto at = std::ranges::find_if(left, [&](size_t i) { return known.members[i].looks == member.looks; });
    if (at == left.end()) at = left.begin();
    const size_t number = at == left.end() ? known.members.size() : *at;
    if (known.looks_of(static_cast<int32_t>(number)) != member.looks) stale.insert(static_cast<int32_t>(number));
    if (at == left.end()) {
      known.members.push_back(std::move(member));
    } else {
      known.members[number] = std::move(member);
      left.erase(at);
    }
  }
  for (const auto& [uid, number] : numbers(set, known.members)) came.at(uid).number = number;
  std::vector<PodSlot> out;
  for (const auto& [slot, number] : known.stand_ins)
    if (stale.contains(number)) out.push_back(slot);
  std::erase_if(known.stand_ins, [&](const auto& stand_in) { return stale.contains(stand_in.second); });
  return out;
}

}  // namespace berth::engine
