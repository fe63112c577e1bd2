#include "engine/pending_queue.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>

#include "base/check.h"

namespace berth::engine {

bool QueueOrder::operator()(PodSlot a, PodSlot b) const {
  return queue_rank(state->pod(a).pod) < queue_rank(state->pod(b).pod);
}

bool PendingQueue::ByHead::operator()(ClassId a, ClassId b) const {
  if (a == b) return false;
  return queue->order_(*queue->classes_[a.value]->pods.begin(), *queue->classes_[b.value]->pods.begin());
}

ClassQueue& PendingQueue::of(ClassId id) {
  if (classes_.size() <= id.value) classes_.resize(std::max<size_t>(id.value + 1, state_.class_slots()));
  auto& entry = classes_[id.value];
  const uint64_t serial = state_.pod_class(id).serial;
  if (entry == nullptr || entry->serial != serial) {
    check(entry == nullptr || entry->pods.empty(), "a class is forgotten only when no pod of it waits");
    entry = std::make_unique<ClassQueue>(state_);
    entry->serial = serial;
  }
  return *entry;
}

const ClassQueue* PendingQueue::find(ClassId id) const {
  if (id.value >= classes_.size() || classes_[id.value] == nullptr) return nullptr;
  const ClassQueue& entry = *classes_[id.value];
  return entry.serial == state_.pod_class(id).serial ? &entry : nullptr;
}

void PendingQueue::push(PodSlot pod) {
  const ClassId id = state_.pod(pod).cls;
  ClassQueue& cls = of(id);
  // Most come in order and behind others of their class: neither search nor a new place among the classes.
  const bool leads = cls.pods.empty() || order_(pod, *cls.pods.begin());
  if (leads && !cls.blocked && !cls.pods.empty()) ready_.erase(id);
  const size_t before = cls.pods.size();
  cls.pods.insert(cls.pods.end(), pod);
  check(cls.pods.size() == before + 1, "a pod is queued once");
  if (const auto& runtime = state_.pod(pod).pod.runtime) cls.by_runtime.emplace(*runtime, pod);
  ++size_;
  if (leads && !cls.blocked) ready_.insert(id);
}

void PendingQueue::erase(PodSlot pod) {
  const ClassId id = state_.pod(pod).cls;
  ClassQueue& cls = of(id);
  if (!cls.blocked) ready_.erase(id);
  const size_t erased = cls.pods.erase(pod);
  check(erased == 1, "a queued pod is in its class's queue");
  if (const auto& runtime = state_.pod(pod).pod.runtime) cls.by_runtime.erase({*runtime, pod});
  --size_;
  if (!cls.pods.empty()) {
    if (!cls.blocked) ready_.insert(id);
    return;
  }
  set_blocked(id, false);
  cls.reports.clear();
}

void PendingQueue::await_report(PodSlot pod) {
  ClassQueue& cls = of(state_.pod(pod).cls);
  cls.reports.push_back(pod);
  if (cls.reports.size() <= 16 + 2 * cls.pods.size()) return;
  cls.reports.clear();  // mostly entries of pods that left
  for (const PodSlot waiting : cls.pods)
    if (state_.pod(waiting).awaits_report) cls.reports.push_back(waiting);
}

PodSlot PendingQueue::head() const {
  return ready_.empty() ? PodSlot{} : *classes_[ready_.begin()->value]->pods.begin();
}

void PendingQueue::set_blocked(ClassId id, bool blocked) {
  ClassQueue& cls = of(id);
  if (cls.blocked == blocked) return;
  cls.blocked = blocked;
  for (const SelectorId selector : state_.pod_class(id).peers.hopes) {
    if (blocked) blocked_by_selector_[selector].insert(id);
    else if (auto& classes = blocked_by_selector_[selector]; classes.erase(id) > 0 && classes.empty())
      blocked_by_selector_.erase(selector);
  }
  if (blocked) {
    ready_.erase(id);
    blocked_.insert(id);
  } else {
    blocked_.erase(id);
    if (!cls.pods.empty()) ready_.insert(id);
  }
}

void PendingQueue::wake_friends(const PodClass& placed) {
  for (const SelectorId selector : placed.seen_by) {
    const auto at = blocked_by_selector_.find(selector);
    if (at == blocked_by_selector_.end()) continue;
    const absl::btree_set<ClassId> classes = at->second;
    for (const ClassId id : classes) set_blocked(id, false);
  }
}

void PendingQueue::unblock_all() {
  while (!blocked_.empty()) set_blocked(*blocked_.begin(), false);
}

void PendingQueue::drop_idle(size_t keep, const absl::btree_set<PodSlot, QueueOrder>& nominees) {
  std::vector<std::pair<uint64_t, uint32_t>> idle;
  for (uint32_t i = 0; i < classes_.size(); ++i)
    if (classes_[i] != nullptr && classes_[i]->pods.empty()) idle.emplace_back(classes_[i]->last_used, i);
  if (idle.size() <= keep) return;
  absl::flat_hash_set<uint32_t> awaited;
  for (const PodSlot nominee : nominees) awaited.insert(state_.pod(nominee).cls.value);
  std::erase_if(idle, [&](const auto& entry) { return awaited.contains(entry.second); });
  if (idle.size() <= keep) return;
  std::sort(idle.begin(), idle.end());
  for (size_t i = 0; i + keep < idle.size(); ++i) classes_[idle[i].second].reset();
}

}  // namespace berth::engine
