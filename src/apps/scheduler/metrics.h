// Metrics: what /metrics shows, under berth_ and, where the meaning is the same, under kube-scheduler's names.
//
// Thread-safe. Counters and histograms are moved as things happen; gauges are set once per cycle.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"

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

  // One scheduling attempt of a pod: "scheduled", "unschedulable" or "error".
  void attempt(std::string_view result, Duration took);
  // Creation to bound, for pods that were created while this process watched.
  void pod_scheduled(Duration since_creation);
  void cycle(Duration took, int64_t work_units);
  // "bound", "failed", "unknown", "conflict".
  void bind(std::string_view result, Duration took);
  void status_patch(bool ok);
  void quarantined(std::string_view kind);
  void pending(const PendingCounts& counts);
  void binds_outstanding(size_t count);
  void leader(bool leading);
  void gpus(double allocatable, double used);
  void nodes(size_t count);
  void events(double created, double aggregated, double dropped);
  void watch(std::string_view resource, double lists, double watches, double gone, double failures);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace berth::apps
