#include "workloads/kueue/queued.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/job_completions.h"
#include "api/kueue_names.h"
#include "api/queue_limits.h"
#include "api/runtime_estimate.h"
#include "api/victim_terms.h"
#include "base/printable.h"
#include "workloads/job/job.h"
#include "workloads/template.h"

namespace berth::workloads {
namespace {

// FNV-1a, so that names stay the same from one release to the next.
uint32_t hash_of(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

// "job-train-3f09a"; names of pods and Jobs may be as long as those of Workloads.
std::string workload_name(std::string_view kind, const api::ObjectMeta& owner) {
  return hashed_name(fmt::format("{}-{}", kind, owner.name), fmt::format("{}/{}/{}", kind, owner.name, owner.uid));
}

std::optional<int32_t> number(const std::string* text) {
  int32_t out = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return out;
}

// How long the Job runs at most, as it declares itself; else as its pods do, of which as many run one after the other
// as must where the least that will do run at a time.
std::optional<Duration> runtime_of(const api::Job& job, const api::WorkloadPodSet& set) {
  if (const auto whole = api::declared_runtime(job.metadata, job.active_deadline_s)) return whole;
  const auto one = api::declared_runtime(job.pod_template.metadata, job.pod_template.spec.active_deadline_s);
  if (!one) return std::nullopt;
  const int64_t at_a_time = std::max(1, set.min_count.value_or(set.count));
  const int64_t completions = completions_follow(job) ? 1 : std::max<int64_t>(1, job.completions.value_or(1));
  const int64_t waves = (completions + at_a_time - 1) / at_a_time;
  if (one->nanos > api::kRuntimeMax.nanos / waves) return std::nullopt;
  return *one * waves;
}

api::Workload workload_for(std::string_view kind, std::string_view api_version, const api::ObjectMeta& owner) {
  api::Workload out;
  out.metadata.namespace_name = owner.namespace_name;
  std::string lower(kind);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  out.metadata.name = workload_name(lower, owner);
  out.metadata.created = owner.created;
  api::OwnerReference reference;
  reference.api_version = api_version;
  reference.kind = kind;
  reference.name = owner.name;
  reference.uid = owner.uid;
  reference.controller = true;
  out.metadata.owners.push_back(std::move(reference));
  out.queue_name = queue_of(owner);
  if (const std::string* priority = owner.labels.find(api::kPriorityClassLabel); priority != nullptr)
    out.metadata.labels.set(std::string(api::kPriorityClassLabel), *priority);
  out.max_execution_s = api::max_execution_s(owner);
  for (const std::string_view key :
       {api::kCheckpointIntervalAnnotation, api::kLastCheckpointAnnotation, api::kUserAnnotation})
    if (const std::string* value = owner.annotation(key)) out.metadata.annotations.set(std::string(key), *value);
  for (const auto& [key, value] : owner.annotations)
    if (key.starts_with(api::kProvisioningParameterPrefix)) out.metadata.annotations.set(key, value);
  return out;
}

api::QueuedWork queued_work_of(const api::ObjectMeta& metadata, const api::Job* job) {
  api::QueuedWork work;
  const auto said = [](const std::string* text) { return text == nullptr ? std::nullopt : std::optional(*text); };
  work.max_execution = said(metadata.labels.find(api::kMaxExecutionLabel));
  if (job == nullptr) return work;
  work.min_parallelism = said(metadata.annotation(api::kMinParallelismAnnotation));
  work.completions_follow = said(metadata.annotation(api::kCompletionsFollowAnnotation));
  work.parallelism = job->parallelism.value_or(1);
  work.completions = job->completions.value_or(1);
  work.indexed = job->indexed;
  return work;
}

}  // namespace

std::string hashed_name(std::string name, std::string_view full, size_t room) {
  constexpr size_t kNameMax = 253, kHashDigits = 5;
  name.resize(std::min(name.size(), kNameMax - room - kHashDigits - 1));
  return fmt::format("{}-{:05x}", name, hash_of(full) & 0xfffff);
}

std::string_view queue_of(const api::ObjectMeta& metadata) {
  const std::string* name = metadata.labels.find(api::kQueueLabel);
  return name == nullptr ? std::string_view() : std::string_view(*name);
}

api::Workload workload_of(const api::Job& job) {
  api::Workload out = workload_for("Job", "batch/v1", job.metadata);
  api::WorkloadPodSet& set = out.pod_sets.emplace_back();
  set.count = wanted_once_released(job, 0, 0);
  set.pod_template = job.pod_template;
  for (const char* key : {"batch.kubernetes.io/job-name", "job-name"})  // as the API server writes them
    if (!set.pod_template.metadata.labels.contains(key))
      set.pod_template.metadata.labels.set(key, std::string(base_name(job.metadata)));
  if (const auto least = number(job.metadata.annotation(api::kMinParallelismAnnotation)); least && *least > 0)
    set.min_count = std::min(*least, set.count);
  out.priority = job.pod_template.spec.priority.value_or(0);
  if (const auto runtime = runtime_of(job, set)) {
    const int64_t second = Duration::seconds(1).nanos, seconds = (runtime->nanos + second - 1) / second;
    if (!out.max_execution_s || seconds != *out.max_execution_s)
      out.metadata.annotations.set(std::string(api::kRuntimeEstimateAnnotation), fmt::format("{}s", seconds));
  }
  return out;
}

void declare_runtime(const api::Job& job, api::Workload& workload) {
  if (workload.metadata.annotation(api::kRuntimeEstimateAnnotation) != nullptr) return;
  const api::Workload made = workload_of(job);
  if (const std::string* runtime = made.metadata.annotation(api::kRuntimeEstimateAnnotation))
    workload.metadata.annotations.set(std::string(api::kRuntimeEstimateAnnotation), *runtime);
}

api::Workload workload_of(const api::Pod& pod) {
  api::Workload out = workload_for("Pod", "v1", pod.metadata);
  api::WorkloadPodSet& set = out.pod_sets.emplace_back();
  set.pod_template = {pod.metadata, pod.spec};
  set.pod_template.spec.scheduling_gates.clear();
  out.priority = pod.spec.priority.value_or(0);
  return out;
}

std::vector<api::QueuedProblem> queued_problems(const api::ObjectMeta& metadata, const api::Job* job) {
  return api::problems_of(queued_work_of(metadata, job));
}

std::string why_not_queued(const api::Job& job) {
  api::QueuedWork work = queued_work_of(job.metadata, &job);
  work.may_be_reduced = true;
  const std::vector<api::QueuedProblem> problems = api::problems_of(work);
  return problems.empty() ? "" : to_string(problems.front());
}

bool completions_follow(const api::Job& job) {
  const std::string* says = job.metadata.annotation(api::kCompletionsFollowAnnotation);
  return says != nullptr && api::completions_follow(*says) == true && job.indexed && job.completions &&
         *job.completions == job.parallelism.value_or(1);
}

void set_pods(api::Job& job, int32_t count) {
  if (completions_follow(job)) job.completions = count;
  job.parallelism = count;
}

int32_t reclaimable(const api::Job& job, int32_t count, int32_t succeeded) {
  if (job.suspend || !job.completions) return 0;
  return std::max(0, count - std::max(0, *job.completions - succeeded));
}

void inject(const PodSetInfo& info, api::ObjectMeta& metadata, api::PodSpec& spec) {
  metadata.annotations.set(std::string(api::kWorkloadAnnotation), info.workload);
  metadata.labels.set(std::string(api::kPodSetLabel), info.name);
  for (const auto& [key, value] : info.node_labels) spec.node_selector.set(key, value);
  for (const model::Toleration& toleration : info.tolerations)
    if (std::find(spec.tolerations.begin(), spec.tolerations.end(), toleration) == spec.tolerations.end())
      spec.tolerations.push_back(toleration);
}

}  // namespace berth::workloads
