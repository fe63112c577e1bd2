#include "workloads/job/job.h"

#include <algorithm>

#include "workloads/template.h"

namespace berth::workloads {
namespace {

constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";

// parallelism and completions both default to 1 when neither is given (SetDefaults_Job).
int32_t parallelism(const api::Job& job) { return job.parallelism.value_or(1); }
std::optional<int32_t> completions(const api::Job& job) {
  if (!job.completions && !job.parallelism) return 1;
  return job.completions;
}

}  // namespace

int32_t wanted_active(const api::Job& job, int32_t active, int32_t succeeded) {
  return job.suspend ? 0 : wanted_once_released(job, active, succeeded);
}

int32_t wanted_once_released(const api::Job& job, int32_t active, int32_t succeeded) {
  const auto wanted = completions(job);
  if (!wanted) return succeeded > 0 ? active : parallelism(job);
  return std::clamp(*wanted - succeeded, 0, parallelism(job));
}

int32_t total_pods(const api::Job& job) {
  if (job.suspend || parallelism(job) == 0) return 0;
  return completions(job).value_or(parallelism(job));
}

int32_t backoff_limit(const api::Job& job) {
  constexpr int32_t kDefault = 6;  // SetDefaults_Job
  return job.backoff_limit.value_or(job.has_backoff_limit_per_index ? INT32_MAX : kDefault);
}

api::Pod job_pod(const api::Job& job, int32_t index) {
  const std::string number = std::to_string(index);
  const std::string name = std::string(base_name(job.metadata)) + "-" + number;
  api::Pod pod = pod_from_template(job.pod_template, job.metadata, "batch/v1", "Job", name);
  pod.metadata.labels.set("batch.kubernetes.io/job-name", std::string(base_name(job.metadata)));
  pod.metadata.labels.set("job-name", std::string(base_name(job.metadata)));
  if (job.indexed) {
    pod.metadata.annotations.set(std::string(kCompletionIndex), number);
    pod.metadata.labels.set(std::string(kCompletionIndex), number);
  }
  return pod;
}

std::vector<api::Pod> job_pods(const api::Job& job) {
  std::vector<api::Pod> pods;
  const int32_t count = wanted_active(job, 0, job.succeeded);
  for (int32_t i = 0; i < count; ++i) pods.push_back(job_pod(job, job.succeeded + i));
  return pods;
}

}  // namespace berth::workloads
