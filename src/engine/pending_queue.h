// PendingQueue: the waiting pods, by class, and the order in which they are tried.
//
// Pods are ordered by priority (high first), creation, namespace/name, UID. Within a class the order decides; among
// classes the one whose first pod comes first is tried next. A class that fits nowhere is blocked: all its pods wait
// behind one verdict, at no cost each, until its candidates change.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/candidates.h"
#include "engine/preemption_view.h"
#include "engine/state.h"

namespace berth::engine {

// The order in which those who wait have their turn, of a pod or a workload, which it points into: by priority, then by
// age; names and UIDs decide the rest.
using QueueRank = std::tuple<int64_t, Time, std::string_view, std::string_view, std::string_view>;
template <typename Waiting>
QueueRank queue_rank(const Waiting& waits) {
  return {-int64_t{waits.priority}, waits.created, waits.namespace_name, waits.name, waits.uid};
}

// The order in which waiting pods are tried.
struct QueueOrder {
  const State* state;
  bool operator()(PodSlot a, PodSlot b) const;
};

// The shortest declared runtime first; equals as they wait.
struct RuntimeOrder {
  QueueOrder before;
  bool operator()(const std::pair<Duration, PodSlot>& a, const std::pair<Duration, PodSlot>& b) const {
    return a.first != b.first ? a.first < b.first : before(a.second, b.second);
  }
};

// What the engine keeps for one class while pods of it wait.
struct ClassQueue {
  explicit ClassQueue(const State& state) : pods(QueueOrder{&state}), by_runtime(RuntimeOrder{QueueOrder{&state}}) {}

  absl::btree_set<PodSlot, QueueOrder> pods;
  absl::btree_set<std::pair<Duration, PodSlot>, RuntimeOrder> by_runtime;  // of these, those that declare one
  Candidates candidates;
  PreemptionView preemption;
  bool blocked = false;          // fits nowhere as of the last look, and nowhere can room be made
  uint64_t serial = 0;           // of the class that this record is about
  uint64_t last_used = 0;        // cycle number, for dropping the candidates of idle classes
  uint64_t looked_at = 0;        // cycle in which the candidates were last up to date
  Time reserve_from{INT64_MIN};  // no node could be kept for its first pod; that is looked at again from then on
  // The verdict that its waiting pods share while it is blocked.
  std::shared_ptr<const std::string> message;
  uint64_t verdict_version = 0;     // number of this text among all verdict texts of the engine; 0: none yet
  uint64_t message_of_view = 0;     // view_version() that `message` was made from
  Time told_all_at{INT64_MIN / 2};  // when all waiting pods were last told a new text
  uint64_t told_all_version = 0;    // which one
  std::deque<PodSlot> reports;      // pods still to be told; entries of pods that left are skipped

  // Grows whenever its verdict may have changed.
  uint64_t view_version() const { return candidates.version() + preemption.version(); }
  // The node that can be cleared at the least cost; invalid: none.
  NodeSlot node_to_clear() const { return candidates.objection().empty() ? preemption.best() : NodeSlot{}; }
  // True when some of its pods may have been told something else than what holds now.
  bool has_news() const { return !message || message_of_view != view_version() || told_all_version != verdict_version; }
};

class PendingQueue {
 public:
  explicit PendingQueue(const State& state) : state_(state), order_{&state}, ready_(ByHead{this}) {}

  void push(PodSlot pod);
  void erase(PodSlot pod);
  // Lists a queued pod as still to be told its class's verdict, O(1) amortised.
  void await_report(PodSlot pod);
  // The next pod to try, of the classes that are not blocked; invalid when there is none.
  PodSlot head() const;
  void set_blocked(ClassId id, bool blocked);

  ClassQueue& of(ClassId id);
  const ClassQueue* find(ClassId id) const;
  const std::vector<std::unique_ptr<ClassQueue>>& classes() const { return classes_; }
  // Classes that fit nowhere and have waiting pods.
  const absl::btree_set<ClassId>& blocked() const { return blocked_; }
  // Makes ready the blocked classes that a pod of `placed` may have helped by taking its place: those whose affinity or
  // spread looks for pods like it.
  void wake_friends(const PodClass& placed);
  // Makes all blocked classes ready: each is looked at again.
  void unblock_all();
  size_t size() const { return size_; }
  // Frees the candidates of classes without waiting or nominated pods, the longest unused first, beyond `keep` of them.
  void drop_idle(size_t keep, const absl::btree_set<PodSlot, QueueOrder>& nominees);

 private:
  struct ByHead {
    const PendingQueue* queue;
    bool operator()(ClassId a, ClassId b) const;
  };

  const State& state_;
  QueueOrder order_;
  std::vector<std::unique_ptr<ClassQueue>> classes_;  // by ClassId; null: nothing kept
  absl::btree_set<ClassId, ByHead> ready_;            // classes with waiting pods that are not blocked
  absl::btree_set<ClassId> blocked_;
  absl::flat_hash_map<SelectorId, absl::btree_set<ClassId>> blocked_by_selector_;
  size_t size_ = 0;
};

}  // namespace berth::engine
