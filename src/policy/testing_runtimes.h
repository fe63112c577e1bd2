// A cluster of pods that declare how long they run, for tests: they end when they really do, minute by minute.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/testing.h"
#include "policy/registry.h"

namespace berth::policy::testing {

inline model::Pod gpus(const std::string& name, int64_t count, std::optional<int> minutes = {}) {
  model::Pod out = engine::testing::make_pod(name, {{"nvidia.com/gpu", count}, {"cpu", 100}});
  if (minutes) out.runtime = Duration::seconds(60 * *minutes);
  return out;
}

class TimedCluster {
 public:
  explicit TimedCluster(engine::EngineOptions options, int nodes = 1)
      : driver_(default_policies(), std::move(options)) {
    for (int i = 0; i < nodes; ++i)
      driver_.add(engine::testing::make_node("n" + std::to_string(i), {{"nvidia.com/gpu", 8}}));
  }

  // It really takes so many minutes.
  void submit(model::Pod pod, int minutes) {
    pod.created = driver_.now() + Duration{static_cast<int64_t>(takes_.size())};
    takes_[pod.uid] = minutes;
    driver_.add(pod);
  }
  // A minute passes: who is over ends, and who fits starts.
  void minute() {
    ++minute_;
    driver_.apply(engine::ClockAdvanced{driver_.now() + Duration::seconds(60)});
    std::vector<std::string> over;
    for (const auto& [uid, start] : started_)
      if (!ended_.contains(uid) && start + takes_.at(uid) <= minute_) over.push_back(uid);
    for (const std::string& uid : over) end(uid);
    settle(Duration::seconds(60));
  }
  void settle(Duration step = {}) {
    for (bool unfinished = true; unfinished; step = {}) {
      const engine::CycleResult result = driver_.cycle(step);
      unfinished = result.unfinished;
      for (const auto& [uid, node] : driver_.outstanding()) started_[uid] = minute_;
      driver_.confirm();
      for (const engine::Decision& decision : result.decisions)
        if (decision.kind == engine::DecisionKind::kEvict) {
          evicted_.push_back(decision.pod_uid);
          end(decision.pod_uid);
        }
    }
  }
  void end(const std::string& uid) {
    ended_[uid] = minute_;
    model::Pod pod = driver_.state().pod(driver_.state().find_pod(uid)).pod;
    pod.terminal = true;
    driver_.add(pod);
  }

  int now() const { return minute_; }
  std::optional<int> started(const std::string& name) const {
    const auto at = started_.find("uid-" + name);
    return at == started_.end() ? std::nullopt : std::optional(at->second);
  }
  const std::vector<std::string>& evicted() const { return evicted_; }
  // Of the pod for which a node is kept: when it was told to be free at the latest, in minutes; none: not known.
  std::optional<int> promised(const std::string& name) const {
    const engine::PodSlot slot = driver_.state().find_pod("uid-" + name);
    if (!slot.valid()) return std::nullopt;
    const engine::PodState& pod = driver_.state().pod(slot);
    if (!pod.node_kept || pod.free_by == Time{INT64_MAX}) return std::nullopt;
    return minute_ + static_cast<int>((pod.free_by - driver_.now()).nanos / Duration::seconds(60).nanos);
  }
  engine::testing::Driver& driver() { return driver_; }

 private:
  engine::testing::Driver driver_;
  std::map<std::string, int> takes_, started_, ended_;  // minutes, by UID
  std::vector<std::string> evicted_;
  int minute_ = 0;
};

}  // namespace berth::policy::testing
