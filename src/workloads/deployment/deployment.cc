#include "workloads/deployment/deployment.h"

#include "workloads/template.h"

namespace berth::workloads {

std::vector<api::Pod> deployment_pods(const api::Deployment& deployment) {
  return replicas_from_template(deployment.pod_template, deployment.metadata, "apps/v1", "Deployment",
                                deployment.replicas);
}

}  // namespace berth::workloads
