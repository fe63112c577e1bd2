// QueueMetrics: workloads and quota of queues under the names that Kueue gives them, so that its dashboards and alerts
// go on working. Amounts are in the resource's base unit, as there (CPU in cores, memory in bytes).
//
// Thread-safe to read (text()); told by the owner thread. Source: https://kueue.sigs.k8s.io/docs/reference/metrics/.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "quota/decision.h"
#include "quota/spending.h"

namespace berth::quota {
class Admission;
struct QueueOverview;
}  // namespace berth::quota

namespace berth::apps {

class QueueMetrics {
 public:
  QueueMetrics();
  ~QueueMetrics();

  // In Prometheus's text format 0.0.4; empty before any queue was seen.
  std::string text() const;
  // How long one that is let in has waited for its quota, and since then for its checks.
  struct Waited {
    Duration in_all, with_quota;
  };
  using WaitedOf = std::function<Waited(const quota::AdmissionDecision&)>;
  void decided(const std::vector<quota::AdmissionDecision>& decisions, const quota::Admission& admission,
               const WaitedOf& waited);
  // Replaces what the last call said. What was counted of queues that are gone goes with them.
  void show(const quota::Admission& admission, const quota::QueueOverview& overview, Time now);

 private:
  void let_in(const quota::AdmissionDecision& decision, const Waited& waited);
  void show_budget(const quota::Spending::Queue& queue, const model::Budget& budget, const quota::Spending& spending,
                   Time now);
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace berth::apps
