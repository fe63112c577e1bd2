// EventLog: an Engine that remembers every call, so that the same calls can be made again to a fresh one.
//
// This is how a production incident would be replayed, and how every scenario proves that decisions depend on nothing
// but the calls. Owner thread only.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/engine.h"

namespace berth::scenario {

struct RecordedCycle {
  Time now;
  std::vector<engine::Decision> decisions;
  std::vector<std::string> admissions;  // "admit default/train to team with h100", in order
  uint64_t state_hash = 0;              // after the cycle
};

using EventLog = std::vector<std::variant<engine::Event, RecordedCycle>>;

class RecordingEngine {
 public:
  // Keeps a log only if `record`.
  RecordingEngine(engine::PolicySet policies, engine::EngineOptions options, bool record)
      : engine_(std::move(policies), std::move(options)), record_(record) {}

  void apply(engine::Event event);
  engine::CycleResult run_cycle(Time now);
  engine::Explanation explain(const std::string& uid) { return engine_.explain(uid); }

  const engine::Engine& engine() const { return engine_; }
  const EventLog& log() const { return log_; }

 private:
  engine::Engine engine_;
  bool record_;
  EventLog log_;
};

// Makes the calls of `log` to a fresh engine. One sentence for each cycle that decided otherwise; empty when all agree.
std::vector<std::string> replay(const EventLog& log, const engine::PolicySet& policies,
                                const engine::EngineOptions& options);

// What two runs with the same steps but different delivery must have in common, cycle by cycle: binds in order, and who
// was told what (in any order, which follows the engine's internal numbering).
std::vector<std::string> decisions_of(const EventLog& log);

}  // namespace berth::scenario
