// What a Simulation remembers of each pod and of each object that was submitted.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/pod.h"
#include "engine/decision.h"
#include "limits/namespace_limits.h"
#include "scenario/manifests.h"
#include "scenario/queue_controller.h"
#include "scenario/report.h"
#include "workloads/kueue/queued.h"

namespace berth::scenario {

// kRefused: the API server has not stored it; its controller, if it has one, tries again.
enum class Stage : uint8_t { kWaiting, kRunning, kEnded, kRefused };
enum class DueKind : uint8_t {
  kPodEnds,
  kPodGone,
  kPodReady,
  kJobDeadline,
  kNodeCut,
  kWorkloadEnds,
  kArrival
};  // in this order

// True for the kinds that limit a namespace.
bool is_limit(const api::Object& object);

// The Workload of a Job, which counts what LimitRanges give its pods, and why they refuse these; empty: they do not.
struct CountedJob {
  api::Workload workload;
  std::string refused;
};
CountedJob counted(const api::Job& job, const limits::LimitRanges& ranges);

// What stood in a cluster already when it was written down: its API server has admitted it.
bool is_stored(const api::Pod& pod);

struct SimPod {
  api::Pod object;
  size_t workload = SIZE_MAX;
  int32_t index = 0;        // among its workload's pods
  size_t group = SIZE_MAX;  // of pods that wait in a queue together, or it by itself
  int32_t attempt = 1;
  GpuCount gpus;
  engine::DeviceNames gpu_devices;  // as decided
  Stage stage = Stage::kWaiting;
  bool counts_gpus = false;
  bool ready = false;  // where somebody waits for it
  Time submitted;
  std::optional<Time> started, finished;
  std::string reason;  // of its end, or why it was not scheduled
  std::shared_ptr<const std::string> verdict;
  std::string unknown_node;  // where a bind without an answer may have put it
  std::string nominated_node;
  std::vector<std::string> feasible;  // nodes, when it was bound
  uint32_t feasible_count = 0;
  std::vector<size_t> evicted;                            // pods that had to leave for it
  bool preempted = false;                                 // it had to leave for another
  std::shared_ptr<const api::Pod> before_admission = {};  // of one that was let in from a queue: as it came
};

// Everything submitted, also bare pods, nodes and namespaces.
struct SimObject {
  Manifest manifest;
  int32_t active = 0, ended = 0, failed = 0, next_index = 0;
  int32_t ready = 0;  // of its active pods
  bool stopped = false;
  bool stored = false;       // by the API server
  std::string refusal = {};  // why it is not, in its words
  // Of a Job that waits in a queue: as it was written, while it is let in; and since when it is.
  std::optional<api::Object> before_admission = {};
  Time released = {};
};

// What people call a Job or Workload: "Job", "default/train".
QueueController::Called called(const api::Object& object);
// When a Job fails that runs since `released`; none: it may run for ever, or the object is no Job.
std::optional<Time> deadline_of(const SimObject& record);
// More of a Job's pods have failed than may.
bool gives_up(const SimObject& record);

// Plain pods that are one Workload (label kueue.x-k8s.io/pod-group-name), or a pod by itself.
struct PodGroup {
  std::vector<size_t> pods = {};  // that have come
  std::optional<api::Workload> workload = {};
  std::string trouble = {};                       // why it has none
  std::vector<workloads::PodSetInfo> infos = {};  // by pod set, while it is let in
  bool ended = false;
};
struct PodGroups {
  std::deque<PodGroup> all = {};
  std::map<std::string, size_t> by_name = {};  // "namespace/name" of the Workload: the latest
};

// Work that a cluster's queues knew already, and that comes with the pods it has there.
struct ResumedWork {
  // By UID of the Workload's owner, and by the Workload's own "namespace/name": the Job or else the Workload here.
  std::map<std::string, size_t, std::less<>> objects = {};
  std::map<std::string, size_t, std::less<>> groups = {};  // by UID of a pod, or by name: its group
  std::vector<QueueController::Owner> fresh = {};          // have come just now
  Time wall = {};                                          // the latest time that any of them tells
};

// What is told of such a pod; `why` is without its name.
struct RefusedPod {
  std::string reason, message, why;
};

// Pods of one workload that the API server has refused, in the order in which they were to be made.
struct RefusedPods {
  limits::Refusal refusal;  // of the first, the last time
  std::deque<size_t> slots;
};

}  // namespace berth::scenario
