// What a Simulation is told when it begins.
#pragma once

#include <cstdint>

#include "bridge/topology.h"
#include "engine/engine.h"
#include "mig/repartitioner.h"

namespace berth::scenario {

struct SimulationOptions {
  engine::PolicySet policies = {};
  engine::EngineOptions engine = {};
  mig::RepartitionOptions repartition = {};
  bridge::TopologyLevels topology_levels = bridge::default_topology_levels();
  uint64_t shuffle_seed = 0;      // other than 0: each batch of events is delivered in an order drawn from it
  bool record = false;            // keep an EventLog
  bool forecasts = false;         // report_with_forecasts() counts from the end of run_to_end(): Report::end
  bool check_invariants = false;  // after every cycle; what is broken is in broken()
};

enum class BindFate : uint8_t { kFails, kUnknown };

}  // namespace berth::scenario
