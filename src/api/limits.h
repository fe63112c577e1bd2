// ResourceQuota and LimitRange: what a namespace may hold in all, and what each of its pods, containers and claims may
// ask for. src/limits does with them what the API server's admission does. Source: k8s.io/api/core/v1 (1.35).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/meta.h"
#include "model/resources.h"

namespace berth::api {

// A condition on the pods that a quota counts: of spec.scopes as Exists, else of spec.scopeSelector.
struct QuotaScope {
  std::string name;  // "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass",
                     // "CrossNamespacePodAffinity", "VolumeAttributesClass"
  std::string operator_name = "Exists";  // "In", "NotIn", "Exists", "DoesNotExist"
  std::vector<std::string> values;
  friend bool operator==(const QuotaScope&, const QuotaScope&) = default;
};

struct ResourceQuota {
  ObjectMeta metadata;
  model::ResourceList hard;        // by the quota's own names ("requests.nvidia.com/gpu"); in units of quota_unit()
  std::vector<QuotaScope> scopes;  // all of them hold for what it counts
};

// What is counted under a quota's name: "cpu" for "requests.cpu" and "limits.cpu", "storage" for what classes have of
// it, else the name itself. Amounts are in that resource's canonical unit (model/quantity.h).
std::string_view quota_unit(std::string_view quota_resource);

struct LimitRangeItem {
  std::string type;  // "Container", "Pod", "PersistentVolumeClaim"; others have no effect
  model::ResourceList max, min;
  model::ResourceList default_limit, default_request;  // as the API server completes them: a maximum is the
                                                       // default limit, that the default request, else the minimum
  model::ResourceList max_ratio_milli;                 // maxLimitRequestRatio, in thousandths
};

struct LimitRange {
  ObjectMeta metadata;
  std::vector<LimitRangeItem> items;  // spec.limits
};

}  // namespace berth::api
