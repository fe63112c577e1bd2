#include "limits/limit_range.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/names.h"
#include "api/requests.h"
#include "base/int128.h"
#include "limits/amounts.h"
#include "model/quantity.h"

namespace berth::limits {
namespace {

using api::ResourceRequirements;
using model::ResourceList;

// One bound of one resource, and what is asked of that resource.
struct Asked {
  const std::string& type;  // of the range's item: "Container"
  const std::string& resource;
  int64_t bound;
  const ResourceList& requests;
  const ResourceList& limits;

  bool requested() const { return requests.contains(resource); }
  bool limited() const { return limits.contains(resource); }
  int64_t request() const { return requests.get(resource); }
  int64_t limit() const { return limits.get(resource); }
  std::string text(int64_t amount) const { return amount_text(resource, amount); }
};

std::string below_minimum(const Asked& asked) {
  const std::string is =
      fmt::format("minimum {} usage per {} is {}", asked.resource, asked.type, asked.text(asked.bound));
  if (!asked.requested()) return is + ".  No request is specified";
  if (asked.request() < asked.bound) return fmt::format("{}, but request is {}", is, asked.text(asked.request()));
  if (asked.limited() && asked.limit() < asked.bound)
    return fmt::format("{}, but limit is {}", is, asked.text(asked.limit()));
  return "";
}

std::string above_maximum(const Asked& asked) {
  const std::string is =
      fmt::format("maximum {} usage per {} is {}", asked.resource, asked.type, asked.text(asked.bound));
  if (!asked.limited()) return is + ".  No limit is specified";
  if (asked.limit() > asked.bound) return fmt::format("{}, but limit is {}", is, asked.text(asked.limit()));
  if (asked.requested() && asked.request() > asked.bound)
    return fmt::format("{}, but request is {}", is, asked.text(asked.request()));
  return "";
}

// Of a claim, which has no limits.
std::string above_maximum_request(const Asked& asked) {
  const std::string is =
      fmt::format("maximum {} usage per {} is {}", asked.resource, asked.type, asked.text(asked.bound));
  if (!asked.requested()) return is + ".  No request is specified";
  return asked.request() > asked.bound ? fmt::format("{}, but request is {}", is, asked.text(asked.request())) : "";
}

// The bound is in thousandths.
std::string above_ratio(const Asked& asked) {
  const std::string is = fmt::format("{} max limit to request ratio per {} is {}", asked.resource, asked.type,
                                     amount_text("cpu", asked.bound));
  if (!asked.requested() || asked.request() == 0) return is + ", but no request is specified or request is 0";
  if (!asked.limited() || asked.limit() == 0) return is + ", but no limit is specified or limit is 0";
  if (static_cast<Int128>(asked.limit()) * 1000 <= static_cast<Int128>(asked.request()) * asked.bound) return "";
  const double ratio = static_cast<double>(asked.limit()) / static_cast<double>(asked.request());
  return fmt::format("{}, but provided ratio is {:f}", is, ratio);
}

using Rule = std::string (*)(const Asked&);

void hold_against(const std::string& type, const ResourceList& bounds, const ResourceRequirements& asks, Rule broken,
                  std::vector<std::string>& out) {
  for (const auto& [resource, bound] : bounds)
    if (std::string why = broken({type, resource, bound, asks.requests, asks.limits}); !why.empty())
      out.push_back(std::move(why));
}

void hold_against(const api::LimitRangeItem& item, const ResourceRequirements& asks, std::vector<std::string>& out) {
  hold_against(item.type, item.min, asks, &below_minimum, out);
  hold_against(item.type, item.max, asks, &above_maximum, out);
  hold_against(item.type, item.max_ratio_milli, asks, &above_ratio, out);
}

void complete(ResourceList& amounts, const ResourceList& defaults) {
  for (const auto& [resource, amount] : defaults)
    if (!amounts.contains(resource)) amounts.set(resource, amount);
}

// Pod-level amounts go before what containers ask for together.
ResourceList over(ResourceList sum, const ResourceList& pod_level) {
  for (const auto& [resource, amount] : pod_level) sum.set(resource, amount);
  return sum;
}

ResourceRequirements of_pod(const api::PodSpec& spec) {
  const ResourceList requests = api::sum_of_requests(spec);
  return {spec.resources ? over(requests, spec.resources->requests) : requests, pod_limits(spec)};
}

void check_requests(const api::Container& container, const std::string& path, std::vector<std::string>& out) {
  for (const auto& [resource, amount] : container.resources.requests) {
    const ResourceList& limits = container.resources.limits;
    const bool exact = model::is_extended_resource(resource) || resource.starts_with("hugepages-");
    const std::string at = path + ".resources.requests: ";
    if (!limits.contains(resource)) {
      if (exact) out.push_back(at + api::required_value("Limit must be set for non overcommitable resources"));
      continue;
    }
    const int64_t limit = limits.get(resource);
    if (exact ? amount == limit : amount <= limit) continue;
    out.push_back(at +
                  api::invalid_value(amount_text(resource, amount),
                                     fmt::format("must be {} to {} limit of {}", exact ? "equal" : "less than or equal",
                                                 resource, amount_text(resource, limit))));
  }
}

}  // namespace

void set_defaults(const api::LimitRange& range, api::PodSpec& spec) {
  for (const api::LimitRangeItem& item : range.items) {
    if (item.type != "Container") continue;
    for (auto* containers : {&spec.containers, &spec.init_containers}) {
      for (api::Container& container : *containers) {
        complete(container.resources.limits, item.default_limit);
        complete(container.resources.requests, item.default_request);
      }
    }
  }
}

std::string invalid_with_defaults(const api::PodSpec& spec) {
  std::vector<std::string> out;
  for (size_t i = 0; i < spec.containers.size(); ++i)
    check_requests(spec.containers[i], fmt::format("spec.containers[{}]", i), out);
  for (size_t i = 0; i < spec.init_containers.size(); ++i)
    check_requests(spec.init_containers[i], fmt::format("spec.initContainers[{}]", i), out);
  return aggregate(out);
}

model::ResourceList pod_limits(const api::PodSpec& spec) {
  const ResourceList sum = api::sum_of_limits(spec);
  return spec.resources ? over(sum, spec.resources->limits) : sum;
}

std::string refusal(const api::LimitRange& range, const api::PodSpec& spec) {
  std::vector<std::string> out;
  for (const api::LimitRangeItem& item : range.items) {
    if (item.type == "Container")
      for (const auto* containers : {&spec.containers, &spec.init_containers})
        for (const api::Container& container : *containers) hold_against(item, container.resources, out);
    if (item.type == "Pod") hold_against(item, of_pod(spec), out);
  }
  return aggregate(out);
}

std::string refusal(const api::LimitRange& range, const api::ClaimSpec& spec) {
  ResourceRequirements asks;
  if (spec.storage_bytes) asks.requests.set("storage", *spec.storage_bytes);
  std::vector<std::string> out;
  for (const api::LimitRangeItem& item : range.items) {
    if (item.type != "PersistentVolumeClaim") continue;
    hold_against(item.type, item.min, asks, &below_minimum, out);
    hold_against(item.type, item.max, asks, &above_maximum_request, out);
  }
  return aggregate(out);
}

std::string aggregate(const std::vector<std::string>& messages) {
  std::vector<std::string> once;
  for (const std::string& message : messages)
    if (std::find(once.begin(), once.end(), message) == once.end()) once.push_back(message);
  if (once.empty()) return "";
  return once.size() == 1 ? once.front() : fmt::format("[{}]", fmt::join(once, ", "));
}

}  // namespace berth::limits
