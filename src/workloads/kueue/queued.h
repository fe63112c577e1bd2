// What stands between a queue and the work in it: the Workload that a Job is admitted by, and what the Job's pods are
// told once it is. Pure functions on api objects. Source: Kueue's job reconcilers,
// https://kueue.sigs.k8s.io/docs/tasks/run/jobs/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/controllers.h"
#include "api/kueue.h"
#include "api/queued_work.h"
#include "model/taint.h"

namespace berth::workloads {

// The LocalQueue that the object's label names; empty: none.
std::string_view queue_of(const api::ObjectMeta& metadata);

// `name`, cut where it is too long for an object with `room` characters behind it, and a hash of `full`.
std::string hashed_name(std::string name, std::string_view full, size_t room = 0);

// The Workload of a Job: one pod set, "main", of as many pods as run at a time; fewer will do where the annotation
// kueue.x-k8s.io/job-min-parallelism says so. Its priority is that of the pods; the caller puts a WorkloadPriorityClass
// in its place. The name is unique among all objects of the namespace that have one; the UID is empty. Where the Job or
// its pods declare a runtime, the annotation berth.dev/runtime-estimate says that of the whole.
api::Workload workload_of(const api::Job& job);
// Has a Workload that others made for the Job, as Kueue does, say how long that runs, where it says nothing itself.
void declare_runtime(const api::Job& job, api::Workload& workload);
// The same as workload_of() of a pod by itself.
api::Workload workload_of(const api::Pod& pod);

// What is wrong with how a Job or pod says how it is queued (api/queued_work.h); of a pod `job` is null.
std::vector<api::QueuedProblem> queued_problems(const api::ObjectMeta& metadata, const api::Job* job);
// The same of a Job that may have been let in before with fewer pods than it asks for: the first of them, as a
// sentence's part; empty: nothing is wrong.
std::string why_not_queued(const api::Job& job);

// The Job says so (api/job_completions.h), and the API server takes it: the completions of an Indexed Job that are as
// many as run at a time may change with these.
bool completions_follow(const api::Job& job);
// So many pods are to run at a time.
void set_pods(api::Job& job, int32_t count);

// Of the `count` pods that a running Job's pod set asks for: how many are needed no more, since fewer completions are
// to come; `succeeded` have been seen so far. Those that run may be fewer than asked for (partial admission).
int32_t reclaimable(const api::Job& job, int32_t count, int32_t succeeded);

// What the admitted pods of a set are told.
struct PodSetInfo {
  std::string workload;  // its name
  std::string name;      // of the pod set
  model::Labels node_labels = {};
  std::vector<model::Toleration> tolerations = {};
};
void inject(const PodSetInfo& info, api::ObjectMeta& metadata, api::PodSpec& spec);

}  // namespace berth::workloads
