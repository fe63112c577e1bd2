// How a workload stands with its queue, for those who tell people.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/queues.h"
#include "quota/decision.h"
#include "quota/quota_tree.h"

namespace berth::quota {

// kQuotaReserved: it has quota, and waits for its checks.
enum class WorkloadPhase : uint8_t { kPending, kQuotaReserved, kAdmitted, kFinished };

// What is known of a workload.
struct WorkloadStatus {
  model::Workload workload;
  std::string cluster_queue;  // of its LocalQueue; empty: none
  WorkloadPhase phase = WorkloadPhase::kPending;
  std::vector<PodSetAssignment> assignment;  // while it has quota
  // Why it is not admitted: "WaitingForQuota", "WaitingForPlace", …; with quota "UnsatisfiedChecks".
  std::string reason, message;
  std::vector<CheckReport> checks = {};  // of its AdmissionChecks, by name; while it has quota
  std::string evicted, preempted;        // reasons of these conditions while they are true
  int32_t requeues = 0;                  // since it was made active: for pods that were not ready in time
  std::optional<Time> requeue_at = {};   // evicted: it waits in no queue before
  bool lent_room = false;                // it has what is kept for others, for as long as it declares
};

// Since when a workload has been admitted, and how long it was before, in all terms together.
struct Term {
  Time since;
  Duration before;
};

// Why a workload waits, in figures. Amounts are in the units of quota.
struct WaitingFor {
  struct HeldBy {
    std::string workload, cluster_queue;
    int64_t amount = 0;
  };
  // Of one flavor and resource, as if all that the workload asks for came from this flavor.
  struct Account {
    std::string flavor, resource;
    int64_t asked = 0;
    int64_t nominal = 0;     // guaranteed to its queue
    int64_t used = 0;        // by its queue
    int64_t may_borrow = 0;  // beyond nominal, as the others' use is now
    int64_t available = 0;   // to its queue now, borrowed included
    int64_t short_by = 0;
    int64_t most = 0;                  // available to its queue with nothing in use
    std::vector<HeldBy> holders = {};  // in all queues that it shares quota with, the most first
  };
  // Of one pod set, as if the others asked for nothing.
  struct Fit {
    std::string pod_set;
    int32_t pods = 0;  // have quota now
    int32_t of = 0;
  };
  std::string message = {};  // as things stand now, where the status says how they stood when it had its turn
  int position = 0;          // in its ClusterQueue, from 1; 0: it is not waiting there
  int waiting = 0;           // so many are
  std::vector<Account> quota;
  std::vector<Fit> fits = {};  // where it lacks quota
};

// How a ClusterQueue stands.
struct QueueStatus {
  bool active = true;
  std::string reason = "Ready";                  // of its condition Active
  std::string why = {};                          // it is not, for people
  int pending = 0, reserving = 0, admitted = 0;  // reserving: those that have quota, the admitted among them
  struct Held {
    std::string flavor, resource;
    int64_t total = 0, borrowed = 0;
    int64_t used = 0;  // of the total: by those that are admitted
  };
  std::vector<Held> held = {};
  std::optional<FairShare> share = {};  // where fair sharing is on
};

// By flavor and resource, in the units of quota.
using FlavorAmounts = std::map<std::pair<std::string, std::string>, int64_t>;

// Of one queue. Those that wait are of active queues, as Kueue counts them.
struct QueueCounts {
  int pending = 0;
  int inadmissible = 0;                // of these: fit nowhere until something happens
  int reserving = 0;                   // have quota
  int admitted = 0;                    // of these: are admitted
  FlavorAmounts held = {}, used = {};  // quota of those that have it, and of the admitted
};

// All queues at once; who has no workload is not in the maps.
struct QueueOverview {
  const QueueCounts& of(const std::string& cluster_queue) const;
  const QueueCounts& of(const std::pair<std::string, std::string>& local_queue) const;

  std::map<std::string, QueueCounts> cluster_queues = {};
  std::map<std::pair<std::string, std::string>, QueueCounts> local_queues = {};  // by namespace and name
  std::map<std::string, FairShare> cohort_shares = {};  // where fair sharing is on; of no Cohort in or below a circle
};

}  // namespace berth::quota
