#include "workloads/kinds.h"

#include "workloads/daemonset/daemonset.h"
#include "workloads/deployment/deployment.h"
#include "workloads/job/job.h"
#include "workloads/replicaset/replicaset.h"
#include "workloads/statefulset/statefulset.h"

namespace berth::workloads {
namespace {

using Nodes = std::span<const api::Node>;

constexpr KindInfo kKinds[] = {
    {"apps/v1", "DaemonSet",
     [](const api::Object& o, Nodes nodes) { return daemonset_pods(std::get<api::DaemonSet>(o), nodes); }},
    {"apps/v1", "Deployment",
     [](const api::Object& o, Nodes) { return deployment_pods(std::get<api::Deployment>(o)); }},
    {"batch/v1", "Job", [](const api::Object& o, Nodes) { return job_pods(std::get<api::Job>(o)); }},
    {"apps/v1", "ReplicaSet",
     [](const api::Object& o, Nodes) { return replicaset_pods(std::get<api::ReplicaSet>(o)); }},
    {"apps/v1", "StatefulSet",
     [](const api::Object& o, Nodes) { return statefulset_pods(std::get<api::StatefulSet>(o)); }},
};

}  // namespace

std::span<const KindInfo> kinds() { return kKinds; }

const KindInfo* find_kind(const api::Object& object) {
  if (std::holds_alternative<api::Unknown>(object)) return nullptr;
  for (const KindInfo& info : kKinds)
    if (info.kind == api::kind_of(object)) return &info;
  return nullptr;
}

}  // namespace berth::workloads
