// How an Engine is to go, and how far in one cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "quota/options.h"

namespace berth::engine {

struct SetPackingOptions {
  bool enabled = false;
  // A pod that has waited for so long takes its turn before all others of its priority.
  Duration head_bound = Duration::seconds(600);
  int64_t work_max = 100'000;  // candidates examined in one search; at most half of what its cycle has left
  int32_t orders_max = 64;     // that one search tries
};

using quota::ReservationOptions;

struct EngineOptions {
  // What to add to the engine's time for that of clocks on the wall, which people are told and in which pods say when
  // they started; none: the engine's time counts from the start of a simulation, and what pods say is of another time.
  std::optional<Duration> wall_offset = {};
  Duration backoff_initial = Duration::seconds(1);  // after a failed bind; doubles with each in a row
  Duration backoff_max = Duration::seconds(10);
  Duration rejection_backoff_max = Duration::seconds(300);  // after the kubelet refused pods of the same owner
  Duration report_interval = Duration::seconds(30);  // a waiting pod hears of a changed verdict at most this often
  Duration eviction_retry = Duration::seconds(60);   // a pod that could not be evicted is left alone for so long
  // A pod that could preempt nobody looks again after so long at the soonest; doubles three times.
  Duration preemption_retry = Duration::seconds(1);
  // After so many nominations for which others had to leave, and which came to nothing, a pod preempts nobody for a
  // while, which doubles with each further one.
  uint32_t nominations_max = 5;
  Duration nominations_pause = Duration::seconds(300);
  size_t list_feasible = 0;   // Bind decisions name so many of the nodes that fit, and count all; O(nodes) each
  size_t idle_classes = 256;  // classes without waiting or nominated pods whose ranking is kept
  quota::AdmissionOptions admission = {};
  SetPackingOptions set_packing = {};
  ReservationOptions reservations = {};  // of pods, and of workloads, whatever `admission` says
};

struct CycleLimits {
  int64_t work = INT64_MAX;         // candidates examined
  int64_t max_binds = INT64_MAX;    // Bind decisions
  int64_t max_reports = INT64_MAX;  // Unschedulable decisions
};

}  // namespace berth::engine
