// Queues and what waits in them, as plain values: quota by flavor, cohorts, and workloads of pod sets.
//
// The terms are Kueue's (kueue.x-k8s.io/v1beta2, https://kueue.sigs.k8s.io/docs/concepts/). Amounts are in the units of
// quota (model/quantity.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/budget.h"
#include "model/labels.h"
#include "model/node_affinity.h"
#include "model/pod_set.h"
#include "model/resources.h"
#include "model/taint.h"

namespace berth::model {

// A kind of node. Pods that get it are sent to nodes with its labels.
struct ResourceFlavor {
  std::string name;
  Labels node_labels;
  std::vector<Taint> node_taints;       // that pods must tolerate to get it
  std::vector<Toleration> tolerations;  // that its pods are given
  friend bool operator==(const ResourceFlavor&, const ResourceFlavor&) = default;
};

struct ResourceQuota {
  int64_t nominal = 0;
  std::optional<int64_t> borrowing_limit;  // above nominal; none: whatever the cohort has
  std::optional<int64_t> lending_limit;    // of nominal; none: all of it
  friend bool operator==(const ResourceQuota&, const ResourceQuota&) = default;
};

struct FlavorQuotas {
  std::string flavor;
  std::map<std::string, ResourceQuota> resources;
  friend bool operator==(const FlavorQuotas&, const FlavorQuotas&) = default;
};

// Resources that come from the same nodes: a pod set takes one flavor for all of them.
struct ResourceGroup {
  std::vector<std::string> resources;
  std::vector<FlavorQuotas> flavors;  // in the order in which they are tried
  friend bool operator==(const ResourceGroup&, const ResourceGroup&) = default;
};

enum class QueueingStrategy : uint8_t { kBestEffortFifo, kStrictFifo };
enum class StopPolicy : uint8_t { kNone, kHold, kHoldAndDrain };
enum class PreemptionPolicy : uint8_t { kNever, kLowerPriority, kLowerOrNewerEqualPriority, kAny };

struct QueuePreemption {
  PreemptionPolicy within_queue = PreemptionPolicy::kNever;
  PreemptionPolicy reclaim_within_cohort = PreemptionPolicy::kNever;
  bool borrow_within_cohort = false;             // take from lower priorities of others even while borrowing
  std::optional<int32_t> borrow_threshold = {};  // then only from priorities up to this
  friend bool operator==(const QueuePreemption&, const QueuePreemption&) = default;
};

// What to do with a flavor that needs borrowing or preemption while others are untried.
struct FlavorFungibility {
  bool try_next_before_borrowing = false;
  bool try_next_before_preempting = true;
  bool preemption_over_borrowing = false;  // among those tried; else borrowing is preferred
  friend bool operator==(const FlavorFungibility&, const FlavorFungibility&) = default;
};

inline constexpr int64_t kFairWeightUnit = 1000;  // weights are counted in thousandths

// The controller that makes nodes for workloads that have quota, so that they need no place before.
inline constexpr std::string_view kProvisioningController = "kueue.x-k8s.io/provisioning-request";

// Something beside quota that has to be ready before a workload is admitted; a controller sees to it.
struct AdmissionCheck {
  std::string name;
  std::string controller;
  bool active = true;  // its condition Active
  friend bool operator==(const AdmissionCheck&, const AdmissionCheck&) = default;
};

// A check that workloads of a queue have to pass: those with one of these flavors; empty: all.
struct AdmissionCheckRule {
  std::string check;
  std::vector<std::string> flavors = {};
  friend bool operator==(const AdmissionCheckRule&, const AdmissionCheckRule&) = default;
};

// When those who have a queue's quota may be evicted for others, and who of them first.
struct VictimTerms {
  Duration min_runtime = {};                    // nobody of the queue is taken from before having run so long
  Duration loss_max = Duration::seconds(3600);  // as much counts as lost at most, since tenants declare it
  bool least_loss_first = false;  // for the queue's own workloads those go first who lose the least, before priority
  friend bool operator==(const VictimTerms&, const VictimTerms&) = default;
};

// How work saves its state, as it declares itself: what it did since then is lost with it.
struct Checkpoints {
  std::optional<Duration> interval;
  std::optional<Time> last;  // counts for more than `interval`
  friend bool operator==(const Checkpoints&, const Checkpoints&) = default;
};

struct ClusterQueue {
  std::string name;
  std::string cohort;  // empty: none
  std::vector<ResourceGroup> groups;
  QueueingStrategy strategy = QueueingStrategy::kBestEffortFifo;
  LabelSelector namespaces{.selects_nothing = true, .requirements = {}};
  QueuePreemption preemption;
  FlavorFungibility fungibility;
  int64_t fair_weight = kFairWeightUnit;
  StopPolicy stop = StopPolicy::kNone;
  std::vector<AdmissionCheckRule> checks = {};
  bool usage_based = false;  // of its LocalQueues the one comes first that has used the least of late
  VictimTerms victims = {};
  ResourceList user_limits = {};  // what the workloads of one user may have of it together; others without limit
  Budget budget = {};
  std::optional<Spent> spent = {};  // as its object says; looked at when it is first heard of
  std::string problem = {};         // why its spec cannot be understood; empty: it can. What was known before counts on
  friend bool operator==(const ClusterQueue&, const ClusterQueue&) = default;
};

struct Cohort {
  std::string name;
  std::string parent;  // empty: a root
  std::vector<ResourceGroup> groups;
  int64_t fair_weight = kFairWeightUnit;
  friend bool operator==(const Cohort&, const Cohort&) = default;
};

// What a LocalQueue has used of late, as it was then, by the wall clock: averages of what was in use, in whole ones of
// each resource (a GPU, a core, a byte). None is negative.
struct UsedOfLate {
  Time until;
  std::map<std::string, double> amounts;
  friend bool operator==(const UsedOfLate&, const UsedOfLate&) = default;
};

struct LocalQueue {
  std::string namespace_name;
  std::string name;
  std::string cluster_queue;
  StopPolicy stop = StopPolicy::kNone;
  int64_t fair_weight = kFairWeightUnit;  // where its ClusterQueue is usage-based
  Budget budget = {};
  std::optional<Spent> spent = {};      // as ClusterQueue's
  std::optional<UsedOfLate> used = {};  // the same; where its ClusterQueue is usage-based
  friend bool operator==(const LocalQueue&, const LocalQueue&) = default;
};

// Why a workload waits that was admitted before, as its object says.
struct Requeue {
  std::string reason, message;  // of its last eviction
  Time evicted;                 // when that was
  std::optional<Time> at = {};  // it waits in no queue before
  int32_t count = 0;            // so often it was requeued for pods that were not ready in time
};

struct Workload {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string queue;      // a LocalQueue of its namespace
  std::string user;       // who submitted it; empty: not told, which counts as one user
  std::string owner_uid;  // its Job's; pods of another owner are none of its own; empty: any
  int32_t priority = 0;
  Time created;
  bool active = true;
  bool of_group = false;                  // its pods are of a group, and say that by their label, too
  std::string problem = {};               // why it waits in no queue, as a sentence; empty: it may
  std::optional<Duration> max_execution;  // then it is deactivated; all its terms of being admitted count
  Duration past_execution;                // of terms that are over, when it was first heard of
  std::optional<Duration> runtime;        // of one term at most, as it declares itself (api/runtime_estimate.h)
  Checkpoints checkpoints = {};
  std::optional<Requeue> requeue = {};  // looked at when it is first heard of
  std::vector<PodSet> pod_sets;

  // "namespace/name".
  std::string full_name() const { return namespace_name + "/" + name; }
};

}  // namespace berth::model
