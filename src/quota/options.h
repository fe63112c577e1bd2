// How admission is to go; a cluster has one such choice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/budget.h"

namespace berth::quota {

// When the preemptor may take from another node of the tree: its share with the workload is at most the victim's
// without it; it is less than the victim's is now.
enum class FairRule : uint8_t { kLessThanOrEqualToFinalShare, kLessThanInitialShare };
using FairRules = std::vector<FairRule>;

// Which time of a workload counts for its place in the queue after its pods took too long.
enum class RequeuingTimestamp : uint8_t { kEviction, kCreation };

// What becomes of an admitted workload whose pods are not all ready in time. Kueue's waitForPodsReady,
// https://kueue.sigs.k8s.io/docs/tasks/manage/setup_wait_for_pods_ready/.
struct WaitForPodsReady {
  bool enabled = false;
  Duration timeout = Duration::seconds(1800);  // since it was admitted
  std::optional<Duration> recovery_timeout;  // since they were ready last; none: as `timeout`; 0: it may take for ever
  bool block_admission = false;              // nobody is let in while the pods of some workload are not ready
  RequeuingTimestamp timestamp = RequeuingTimestamp::kEviction;
  std::optional<int32_t> backoff_limit;           // so often it is requeued, then it is deactivated; none: always
  Duration backoff_base = Duration::seconds(60);  // before it is requeued first; doubles each time
  Duration backoff_max = Duration::seconds(3600);

  // Before it is requeued for the n-th time, from 1. Without the jitter that Kueue adds.
  Duration backoff(int32_t n) const;
};

// How the usage of LocalQueues counts where their ClusterQueue is usage-based. Kueue's admissionFairSharing,
// https://kueue.sigs.k8s.io/docs/concepts/admission_fair_sharing/.
struct AdmissionFairSharing {
  Duration half_life = Duration::seconds(7 * 24 * 3600);  // what was used counts half after so long; 0: not at all
  Duration sampling_interval = Duration::seconds(300);
  std::map<std::string, int64_t> resource_weights = {};  // in thousandths of a unit's; of others 1
};

// Room that is kept free for who has waited long (engine/engine_reserve.h, quota/admission_keeper.h).
struct ReservationOptions {
  bool enabled = true;
  Duration after = Duration::seconds(600);  // that it has waited
  int32_t per_queue = 1;                    // pods or workloads of one queue for which room is kept, at most
  Duration retry = Duration::seconds(30);   // between looks at the nodes for one of them
};

struct AdmissionOptions {
  std::optional<FairRules> fair = {};  // none: without fair sharing
  WaitForPodsReady pods_ready = {};
  AdmissionFairSharing usage = {};
  // What a workload's creation is told in, less what cycles are: on a cluster these are the wall clock's time and one
  // that never jumps.
  Duration created_ahead = {};
  model::GpuPrices gpu_prices = {};  // what budgets in money go by
  ReservationOptions reservations = {.enabled = false};
};

// As people are told it, of a time of cycles: since the beginning, where that is of a simulation.
std::string time_text(Time time, Duration created_ahead);

}  // namespace berth::quota
