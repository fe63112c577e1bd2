#include "limits/remarks.h"

#include <fmt/format.h>

#include <algorithm>

#include "limits/amounts.h"
#include "limits/usage.h"
#include "model/quantity.h"

namespace berth::limits {
namespace {

constexpr std::string_view kCounted[] = {"count/pods", "count/jobs.batch", "count/persistentvolumeclaims"};

bool has_default(const api::LimitRange& range, std::string_view resource) {
  return std::any_of(range.items.begin(), range.items.end(), [&](const api::LimitRangeItem& item) {
    return item.type == "Container" && item.default_limit.contains(resource);
  });
}

}  // namespace

std::vector<std::string> remarks(const api::ResourceQuota& quota) {
  std::vector<std::string> out;
  for (const auto& [resource, amount] : quota.hard) {
    if (resource.starts_with("count/")) {
      if (std::find(std::begin(kCounted), std::end(kCounted), resource) == std::end(kCounted))
        out.push_back(fmt::format("{} is not counted here", resource));
      continue;
    }
    const std::string_view unit = api::quota_unit(resource);
    if (model::is_extended_resource(unit) && !counted_of_pods(resource) && !counted_of_claims(resource))
      out.push_back(
          fmt::format("{} limits nothing: of {} only requests are counted; write requests.{}", resource, unit, unit));
  }
  return out;
}

std::vector<std::string> remarks(const api::LimitRange& range) {
  std::vector<std::string> out;
  for (const api::LimitRangeItem& item : range.items) {
    for (const auto& [resource, amount] : item.default_limit)
      if (item.type == "Container" && model::is_gpu_resource(resource) && amount > 0)
        out.push_back(
            fmt::format("each container that names no {} gets {}, since a maximum without a default is the "
                        "default; give default and defaultRequest of 0 if it is to have none",
                        resource, amount_text(resource, amount)));
    for (const auto& [resource, amount] : item.max)
      if (item.type == "Pod" && model::is_gpu_resource(resource) && !has_default(range, resource))
        out.push_back(
            fmt::format("a pod that names no {} is refused: a maximum of pods asks for a limit, for which "
                        "there is no default; bound containers instead, or use a quota",
                        resource));
  }
  return out;
}

}  // namespace berth::limits
