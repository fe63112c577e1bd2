#include "apps/scheduler/queue_watch.h"

#include "api/decode.h"
#include "api/kueue_names.h"

namespace berth::apps {
namespace {

constexpr std::string_view kGroup = "kueue.x-k8s.io", kVersion = "v1beta2";

constexpr kube::Resource kResources[kQueueKinds] = {
    {kGroup, kVersion, "resourceflavors", "ResourceFlavor"},
    {kGroup, kVersion, "provisioningrequestconfigs", "ProvisioningRequestConfig"},
    {kGroup, kVersion, "admissionchecks", "AdmissionCheck"},
    {kGroup, kVersion, "cohorts", "Cohort"},
    {kGroup, kVersion, "clusterqueues", "ClusterQueue"},
    {kGroup, kVersion, "localqueues", "LocalQueue"},
    {kGroup, kVersion, "workloadpriorityclasses", "WorkloadPriorityClass"},
    {"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass"},
    {"", "v1", "limitranges", "LimitRange"},
    {"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass"},
    {kGroup, kVersion, "workloads", "Workload"},
    {"autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest"},
    {"batch", "v1", "jobs", "Job"},
    kube::kPods,
};

Result<SeenQueueObject> decode(QueueKind kind, std::string_view json) {
  if (kind == QueueKind::kJob && json.find(api::kQueueLabel) == std::string_view::npos) {
    BERTH_TRY(named, api::decode_json<api::Namespace>(json));  // which is read for its metadata alone
    queueing::SeenJob job;
    job.job.metadata = std::move(named.metadata);
    return SeenQueueObject(std::move(job));
  }
  if (kind == QueueKind::kJob) {
    BERTH_TRY(job, queueing::decode_job(json));
    return SeenQueueObject(std::move(job));
  }
  if (kind == QueueKind::kPod) {
    BERTH_TRY(pod, queueing::decode_pod(json));
    return SeenQueueObject(std::move(pod));
  }
  if (kind == QueueKind::kWorkload) {
    BERTH_TRY(workload, queueing::decode_any_workload(json));
    return SeenQueueObject(std::move(workload));
  }
  if (kind == QueueKind::kProvisioningRequestConfig) {
    BERTH_TRY(config, queueing::decode_provisioning_config(json));
    return SeenQueueObject(std::move(config));
  }
  if (kind == QueueKind::kProvisioningRequest) {
    BERTH_TRY(request, queueing::decode_provisioning_request(json));
    return SeenQueueObject(std::move(request));
  }
  if (kind == QueueKind::kPriorityClass) {
    BERTH_TRY(priority, api::decode_json<api::PriorityClass>(json));
    return SeenQueueObject(std::move(priority));
  }
  if (kind == QueueKind::kLimitRange) {
    BERTH_TRY(range, api::decode_json<api::LimitRange>(json));
    return SeenQueueObject(std::move(range));
  }
  if (kind == QueueKind::kRuntimeClass) {
    BERTH_TRY(runtime, api::decode_json<api::RuntimeClass>(json));
    return SeenQueueObject(std::move(runtime));
  }
  BERTH_TRY(object, queueing::decode_queue_object(json, resource_of(kind).kind));
  return SeenQueueObject(std::move(object));
}

}  // namespace

const kube::Resource& resource_of(QueueKind kind) { return kResources[static_cast<size_t>(kind)]; }

QueueWatch::QueueWatch(kube::Client& client, std::function<void(QueueUpdates)> sink) {
  for (size_t i = 0; i < kQueueKinds; ++i) {
    const auto kind = static_cast<QueueKind>(i);
    kube::ReflectorOptions options{.resource = kResources[i]};
    if (kind == QueueKind::kPod) options.label_selector = api::kQueueLabel;
    reflectors_[i] = std::make_unique<kube::Reflector<SeenQueueObject>>(
        client, std::move(options), [kind](std::string_view json) { return decode(kind, json); },
        [sink, kind](auto updates) {
          sink({kind, std::move(updates)});
        });
  }
}

void QueueWatch::start() {
  for (auto& reflector : reflectors_) reflector->start();
}

void QueueWatch::stop() {
  for (auto& reflector : reflectors_) reflector->stop();
}

bool QueueWatch::refused(QueueKind kind) const { return reflectors_[static_cast<size_t>(kind)]->refused(); }

std::string QueueWatch::last_error() const {
  for (const auto& reflector : reflectors_)
    if (std::string error = reflector->last_error(); !error.empty() && !reflector->refused()) return error;
  return "";
}

std::vector<std::pair<std::string_view, kube::ReflectorStats>> QueueWatch::stats() const {
  std::vector<std::pair<std::string_view, kube::ReflectorStats>> out;
  for (size_t i = 0; i < kQueueKinds; ++i) out.emplace_back(kResources[i].plural, reflectors_[i]->stats());
  return out;
}

}  // namespace berth::apps
