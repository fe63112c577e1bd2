// Builders and a driver for tests of the engine and of the layers above it.
//
// A Driver stands in for the daemon: it hands the engine events, runs cycles and reports what became of the binds.
// After every step it checks the engine's invariants, that no decision put a node above its allocatable (I1) and that
// no pod has two binds outstanding (I5); what does not hold is thrown as BrokenInvariant, which GoogleTest, rapidcheck
// and libFuzzer all take as a failure.
//
//   Driver driver(default_policies());
//   driver.add(make_node("a", {{"nvidia.com/gpu", 8}}));
//   driver.add(make_pod("train", {{"nvidia.com/gpu", 4}}));
//   driver.cycle();
//   EXPECT_EQ(driver.node_of("train"), "a");
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/invariants.h"

namespace berth::engine::testing {

struct BrokenInvariant : std::logic_error {
  using std::logic_error::logic_error;
};

// A node with 64 cores, 256 GiB, 1 TiB of disk and 110 pods, save what `allocatable` says.
inline model::Node make_node(std::string name, const model::ResourceList& allocatable = {}) {
  model::Node node;
  node.name = std::move(name);
  node.uid = "uid-" + node.name;
  node.labels = {{"kubernetes.io/hostname", node.name}};
  node.allocatable = {
      {"cpu", 64'000}, {"memory", int64_t{256} << 30}, {"ephemeral-storage", int64_t{1} << 40}, {"pods", 110}};
  for (const auto& [resource, amount] : allocatable) node.allocatable.set(resource, amount);
  node.capacity = node.allocatable;
  return node;
}

// A pod in namespace "default" whose UID is "uid-<name>"; it requests `requests` and "pods": 1.
inline model::Pod make_pod(const std::string& name, const model::ResourceList& requests = {}) {
  model::Pod pod;
  pod.uid = "uid-" + name;
  pod.namespace_name = "default";
  pod.name = name;
  auto spec = std::make_shared<model::SchedulingSpec>();
  spec->requests = requests;
  spec->requests.set("pods", 1);
  pod.spec = std::move(spec);
  return pod;
}

// The pod with a spec changed by `edit(SchedulingSpec&)`.
template <typename Edit>
model::Pod with_spec(model::Pod pod, Edit edit) {
  auto spec = std::make_shared<model::SchedulingSpec>(*pod.spec);
  edit(*spec);
  pod.spec = std::move(spec);
  return pod;
}

inline model::Pod with_priority(model::Pod pod, int32_t priority) {
  pod.priority = priority;
  return pod;
}

inline model::Pod bound_to(model::Pod pod, std::string node) {
  pod.node_name = std::move(node);
  return pod;
}

// Nothing waits for time to pass, and nothing is kept for who has waited.
inline const EngineOptions kAtOnce{
    .preemption_retry = Duration{}, .nominations_max = UINT32_MAX, .reservations = {.enabled = false}};

class Driver {
 public:
  explicit Driver(PolicySet policies, EngineOptions options = {}) : engine_(std::move(policies), std::move(options)) {}

  void apply(const Event& event) {
    if (const auto* gone = std::get_if<PodDeleted>(&event)) outstanding_.erase(gone->uid);
    if (const auto* pod = std::get_if<PodUpserted>(&event))
      if (pod->pod.terminal || !pod->pod.node_name.empty()) outstanding_.erase(pod->pod.uid);
    if (const auto* all = std::get_if<PodsReplaced>(&event)) keep_listed(*all);
    if (const auto* bind = std::get_if<BindProgress>(&event))
      if (bind->outcome == BindOutcome::kSucceeded || bind->outcome == BindOutcome::kFailed)
        outstanding_.erase(bind->uid);
    engine_.apply(event);
    expect_sound();
  }
  void add(const model::Node& node) { apply(NodeUpserted{node}); }
  void add(const model::Pod& pod) { apply(PodUpserted{pod}); }
  void bind_progress(const std::string& uid, BindOutcome outcome) { apply(BindProgress{uid, outcome}); }

  // Runs one cycle `step` after the last one.
  CycleResult cycle(Duration step = {}, const CycleLimits& limits = {}) {
    now_ = now_ + step;
    CycleResult result = engine_.run_cycle(now_, limits);
    expect_sound();
    for (const Decision& decision : result.decisions) {
      if (decision.kind == DecisionKind::kBind) expect_sound_bind(decision);
      else if (decision.kind == DecisionKind::kEvict) expect_sound_eviction(decision);
      else told_[decision.pod_uid].push_back(*decision.message);
    }
    return result;
  }
  // Every outstanding bind succeeds, and the watch shows it.
  void confirm() {
    const auto all = std::exchange(outstanding_, {});
    for (const auto& [uid, node] : all) {
      bind_progress(uid, BindOutcome::kSucceeded);
      add(bound_to(engine_.state().pod(engine_.state().find_pod(uid)).pod, node));
    }
  }

  const Engine& engine() const { return engine_; }
  Explanation explain(const std::string& uid) { return engine_.explain(uid); }
  const State& state() const { return engine_.state(); }
  Time now() const { return now_; }
  // By UID, the node of each bind that has been decided and neither confirmed nor refused.
  const std::map<std::string, std::string>& outstanding() const { return outstanding_; }
  // The verdicts that the pod has been told, in order.
  const std::vector<std::string>& told(const std::string& uid) { return told_[uid]; }

  // Of the pod that make_pod(name) made: its phase, and the node that it has a place on ("" without one).
  PodPhase phase_of(const std::string& name) const { return find(name).phase; }
  std::string node_of(const std::string& name) const {
    const PodState& pod = find(name);
    return holds_room(pod.phase) ? state().node(pod.node).node.name : "";
  }

 private:
  const PodState& find(const std::string& name) const {
    const PodSlot slot = state().find_pod("uid-" + name);
    if (!slot.valid()) throw BrokenInvariant("the engine does not know pod " + name);
    return state().pod(slot);
  }
  void keep_listed(const PodsReplaced& list) {
    std::map<std::string, std::string> kept;
    for (const model::Pod& pod : list.pods)
      if (const auto at = outstanding_.find(pod.uid);
          at != outstanding_.end() && pod.node_name.empty() && !pod.terminal)
        kept.insert(*at);
    outstanding_ = std::move(kept);
  }
  void expect_sound() const {
    for (const std::string& sentence : broken_invariants(engine_)) throw BrokenInvariant(sentence);
  }
  // Nobody has to leave twice, or for a pod that is not more important, but for one whose room it has borrowed.
  void expect_sound_eviction(const Decision& eviction) {
    const PodState& victim = state().pod(state().find_pod(eviction.pod_uid));
    const PodState& preemptor = state().pod(state().find_pod(eviction.preemptor_uid));
    if (victim.pod.priority >= preemptor.pod.priority && !victim.backfilled)
      throw BrokenInvariant("pod " + eviction.pod_uid + " has to leave for one that is not more important");
    if (victim.pod.terminating) throw BrokenInvariant("pod " + eviction.pod_uid + " is leaving already");
  }
  void expect_sound_bind(const Decision& bind) {
    if (!outstanding_.emplace(bind.pod_uid, bind.node_name).second)
      throw BrokenInvariant("pod " + bind.pod_uid + " has two binds outstanding");
    const NodeSlot slot = state().find_node(bind.node_name);
    if (!slot.valid()) throw BrokenInvariant("a bind goes to " + bind.node_name + ", which does not exist");
    model::ResourceList used;
    for (const PodSlot pod : state().node(slot).pods)  // a nominated one has been charged beside those that leave
      if (state().pod(pod).phase != PodPhase::kNominated) used.add(state().pod(pod).pod.spec->requests);
    for (const auto& [name, amount] : state().pod(state().find_pod(bind.pod_uid)).pod.spec->requests)
      if (amount > 0 && used.get(name) > state().node(slot).node.allocatable.get(name))
        throw BrokenInvariant("a bind puts " + bind.node_name + " above its allocatable " + name);
  }

  Engine engine_;
  Time now_{1'000'000'000};
  std::map<std::string, std::string> outstanding_;
  std::map<std::string, std::vector<std::string>> told_;
};

}  // namespace berth::engine::testing
