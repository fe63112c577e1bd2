// Metrics: what /metrics shows, under berth_ and, where the meaning is the same, under kube-scheduler's names.
//
// Thread-safe. Counters and histograms are moved as things happen; gauges are set once per cycle. Every counter has its
// series from the start, at 0, so that the first increase of each is seen.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/scheduler/queue_metrics.h"
#include "base/time.h"
#include "kube/event_recorder.h"
#include "kube/reflector.h"

namespace berth::engine {
struct GpuTotals;
struct ResourceRoom;
}  // namespace berth::engine

namespace berth::apps {

// What waits, by kube-scheduler's queue names.
struct PendingCounts {
  size_t active = 0, backoff = 0, unschedulable = 0, gated = 0;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // In Prometheus's text format 0.0.4.
  std::string text() const;

  // What became of a pod: "scheduled"; "unschedulable", each time that it is told another reason; or "error".
  void outcome(std::string_view result);
  // A pod was bound so long after it could be scheduled: after its creation, or when its last gate fell.
  void pod_scheduled(Duration waited);
  void cycle(Duration took, int64_t work_units);
  // A turn of the owner thread, which should not be longer than `longest`; `lists`: it applied one.
  void owner_turn(Duration took, Duration longest, size_t updates, bool lists);
  void owner_backlog(size_t messages);
  // to_string(BindEnd).
  void bind(std::string_view result, Duration took);
  // A pod for which room is made, by evicting so many others.
  void preemption(size_t victims);
  // to_string(EvictionEnd).
  void eviction(std::string_view result);
  // "begun", "arrived", "failed" or "withdrawn" (the node had changed meanwhile).
  void repartition(std::string_view result);
  void repartitioning(size_t nodes);
  void status_patch(bool ok);
  void quarantined(std::string_view kind);
  void pending(const PendingCounts& counts);
  void binds_outstanding(size_t count);
  // Answers of 429 to binds that this session has had so far.
  void binds_throttled(uint64_t so_far);
  // Pods that a node is kept for, and how often this session has kept one.
  void reservations(size_t pods, size_t workloads, uint64_t so_far);
  void leader(bool leading);
  void gpus(const engine::GpuTotals& totals);
  // Replaces what the last call said; what is not among the rooms any more has no series.
  void fragmentation(const std::vector<engine::ResourceRoom>& rooms);
  void nodes(size_t count);
  QueueMetrics& queues() { return queues_; }
  // What a session's event recorder and reflectors have counted so far; they begin at 0 with each session.
  void session_began();
  void events(const kube::EventStats& so_far);
  void watch(std::string_view resource, const kube::ReflectorStats& so_far);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
  QueueMetrics queues_;
};

}  // namespace berth::apps
