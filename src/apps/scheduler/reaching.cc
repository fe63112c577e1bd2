#include "apps/scheduler/reaching.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "webhook/pod_checks.h"

namespace berth::apps {

void judge_reach(std::string_view json, webhook::UnrequestedGpus policy, SeenPod& seen) {
  if (policy == webhook::UnrequestedGpus::kIgnore || !seen.pod.ours || !seen.pod.node_name.empty()) return;
  if (json.find("NVIDIA_VISIBLE_DEVICES") == std::string_view::npos) return;
  const nlohmann::json pod = nlohmann::json::parse(json, nullptr, false);
  if (!pod.is_object()) return;
  for (webhook::Reach& reach : webhook::unrequested_gpus(pod, "spec")) {
    if (policy == webhook::UnrequestedGpus::kDeny && reach.certain && seen.pod.spec->gpu_share.problem.empty()) {
      auto spec = std::make_shared<model::SchedulingSpec>(*seen.pod.spec);
      spec->gpu_share.problem = std::move(reach.text) + ".";
      seen.pod.spec = std::move(spec);
      seen.reaches.clear();  // the verdict says so
      return;
    }
    if (seen.reaches.empty()) seen.reaches = std::move(reach.text);
  }
}

}  // namespace berth::apps
