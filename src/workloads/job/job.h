// Job: pods that run to the end, so many at once, so many in all.
// Source: k8s.io/kubernetes/pkg/controller/job (manageJob), batch/v1.
#pragma once

#include <cstdint>
#include <vector>

#include "api/controllers.h"

namespace berth::workloads {

// How many pods should run when `active` run and `succeeded` have succeeded: at most parallelism, and no more than the
// completions still to come. Without completions a first success means that no pod is started any more. 0 if suspended.
int32_t wanted_active(const api::Job& job, int32_t active, int32_t succeeded);
// The same of the job as it is when it is not suspended.
int32_t wanted_once_released(const api::Job& job, int32_t active, int32_t succeeded);

// Pods that the job needs in all if none fails: completions, or parallelism without them. 0 if suspended.
int32_t total_pods(const api::Job& job);

// How many of its pods may fail before the job fails: backoffLimit, by default 6, without a limit where each index has
// its own.
int32_t backoff_limit(const api::Job& job);

// The `index`th pod, "train-0", "train-1", …; of an Indexed job with its completion index as annotation and label.
api::Pod job_pod(const api::Job& job, int32_t index);

// The pods at the start: wanted_active(job, 0, job.succeeded) of them, the first index being that of the first
// completion still to come.
std::vector<api::Pod> job_pods(const api::Job& job);

}  // namespace berth::workloads
