#include "webhook/owners.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "api/kueue_names.h"
#include "webhook/object.h"

namespace berth::webhook {
namespace {

struct OwnerKind {
  std::string_view group, kind;  // an empty kind is every kind of the group
};
constexpr OwnerKind kWholes[] = {
    {"batch", "Job"},
    {"jobset.x-k8s.io", "JobSet"},
    {"kubeflow.org", ""},
    {"trainer.kubeflow.org", ""},
    {"ray.io", ""},
    {"leaderworkerset.x-k8s.io", "LeaderWorkerSet"},
    {"workload.codeflare.dev", "AppWrapper"},
    {"sparkoperator.k8s.io", "SparkApplication"},
};

}  // namespace

std::string whole_of(const nlohmann::json& object) {
  for (const nlohmann::json& owner : list_of(part_of(object, "metadata"), "ownerReferences")) {
    if (!owner.is_object() || !owner.contains("controller") || owner["controller"] != true) continue;
    const std::string version = text_of(owner, "apiVersion");
    std::string kind = text_of(owner, "kind");
    const std::string_view group = std::string_view(version).substr(0, version.find('/'));
    for (const OwnerKind& whole : kWholes)
      if (group == whole.group && (whole.kind.empty() || kind == whole.kind)) return kind;
  }
  return "";
}

bool waits(const nlohmann::json& object) {
  return !label_of(object, api::kQueueLabel).empty() && whole_of(object).empty();
}

bool comes_to_wait(const nlohmann::json& object, const nlohmann::json& before) {
  if (label_of(object, api::kQueueLabel).empty()) return false;
  return label_of(before, api::kQueueLabel).empty() || (waits(object) && !waits(before));
}

bool is_managed_whole(const std::string& kind) { return kind == "Job"; }

}  // namespace berth::webhook
