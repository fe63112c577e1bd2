#include "limits/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "api/requests.h"
#include "limits/limit_range.h"
#include "model/quantity.h"

namespace berth::limits {
namespace {

using model::ResourceList;

// Whose requests count under two names, and whose limits count.
constexpr std::string_view kCompute[] = {"cpu", "memory", "ephemeral-storage"};
// Source: validationSet; a quota of these makes every container say what it asks for.
constexpr std::string_view kRequired[] = {"cpu",    "limits.cpu",   "limits.memory",
                                          "memory", "requests.cpu", "requests.memory"};
constexpr std::string_view kOfClass = ".storageclass.storage.k8s.io/";

bool is_compute(std::string_view name) {
  return std::find(std::begin(kCompute), std::end(kCompute), name) != std::end(kCompute);
}
bool is_huge_page(std::string_view name) { return name.starts_with("hugepages-"); }

ResourceList compute_usage(const ResourceList& requests, const ResourceList& limits) {
  ResourceList out;
  out.set("pods", 1);
  for (const auto& [name, amount] : requests) {
    if (is_compute(name) || is_huge_page(name)) out.set(name, amount);
    if (is_compute(name) || is_huge_page(name) || model::is_extended_resource(name))
      out.set("requests." + name, amount);
  }
  for (const auto& [name, amount] : limits)
    if (is_compute(name)) out.set("limits." + name, amount);
  return out;
}

bool asks_for_compute(const api::ResourceRequirements& resources) {
  for (const ResourceList* list : {&resources.requests, &resources.limits})
    if (list->get("cpu") > 0 || list->get("memory") > 0) return true;
  return false;
}

// Source: qos.ComputePodQOS.
bool is_best_effort(const api::PodSpec& spec) {
  if (spec.resources && !(spec.resources->requests.empty() && spec.resources->limits.empty()))
    return !asks_for_compute(*spec.resources);
  for (const auto* containers : {&spec.containers, &spec.init_containers})
    for (const api::Container& container : *containers)
      if (asks_for_compute(container.resources)) return false;
  return true;
}

bool looks_across(const api::PodAffinity& affinity) {
  const auto across = [](const api::PodAffinityTerm& term) {
    return !term.namespaces.empty() || term.namespace_selector.has_value();
  };
  return std::any_of(affinity.required.begin(), affinity.required.end(), across) ||
         std::any_of(affinity.preferred.begin(), affinity.preferred.end(),
                     [&](const auto& weighted) { return across(weighted.term); });
}

// The class of the object against a scope that selects classes. Source: podMatchesSelector.
bool selects_class(const api::QuotaScope& scope, const std::string& name) {
  const bool listed = std::find(scope.values.begin(), scope.values.end(), name) != scope.values.end();
  if (scope.operator_name == "In") return !name.empty() && listed;
  if (scope.operator_name == "NotIn") return name.empty() || !listed;
  return (scope.operator_name == "Exists") != name.empty();
}

bool holds(const api::QuotaScope& scope, const Usage& usage) {
  if (!usage.pod) return scope.name == "VolumeAttributesClass" && selects_class(scope, usage.class_name);
  if (scope.name == "Terminating") return usage.terminating;
  if (scope.name == "NotTerminating") return !usage.terminating;
  if (scope.name == "BestEffort") return usage.best_effort;
  if (scope.name == "NotBestEffort") return !usage.best_effort;
  if (scope.name == "CrossNamespacePodAffinity") return usage.looks_across_namespaces;
  return scope.name == "PriorityClass" && selects_class(scope, usage.class_name);
}

}  // namespace

Usage usage_of(const api::Pod& pod) {
  Usage out;
  out.pod = true;
  out.terminating = pod.spec.active_deadline_s.value_or(-1) >= 0;
  out.best_effort = is_best_effort(pod.spec);
  out.looks_across_namespaces = looks_across(pod.spec.pod_affinity) || looks_across(pod.spec.pod_anti_affinity);
  out.class_name = pod.spec.priority_class_name;
  if (!pod.terminal()) {
    ResourceList limits = pod_limits(pod.spec);
    for (const auto& [name, amount] : pod.spec.overhead)
      if (limits.contains(name)) limits.add(name, amount);
    out.amounts = compute_usage(api::effective_requests(pod), limits);
  }
  out.amounts.set("count/pods", 1);
  return out;
}

Usage usage_of(const api::PersistentVolumeClaim& claim) {
  Usage out = usage_of_one("persistentvolumeclaims");
  out.class_name = claim.spec.volume_attributes_class_name;
  const std::string of_class = claim.storage_class().empty() ? "" : claim.storage_class() + std::string(kOfClass);
  const auto set = [&](std::string_view name, int64_t amount) {
    out.amounts.set(name, amount);
    if (!of_class.empty()) out.amounts.set(of_class + std::string(name), amount);
  };
  set("persistentvolumeclaims", 1);
  if (claim.spec.storage_bytes) set("requests.storage", *claim.spec.storage_bytes);
  return out;
}

Usage usage_of_one(std::string_view resource) {
  Usage out;
  out.amounts.set(fmt::format("count/{}", resource), 1);
  return out;
}

bool counted_of_pods(std::string_view quota_resource) {
  if (quota_resource == "pods" || quota_resource == "count/pods") return true;
  const std::string_view unit = api::quota_unit(quota_resource);
  const bool limits = quota_resource.starts_with("limits.");
  if (is_compute(unit) || (is_huge_page(unit) && !limits)) return true;
  return quota_resource.starts_with("requests.") && model::is_extended_resource(unit);
}

bool counted_of_claims(std::string_view quota_resource) {
  if (quota_resource == "count/persistentvolumeclaims") return true;
  const size_t of_class = quota_resource.find(kOfClass);
  const std::string_view name =
      of_class == std::string_view::npos ? quota_resource : quota_resource.substr(of_class + kOfClass.size());
  return name == "persistentvolumeclaims" || name == "requests.storage";
}

bool counts(const api::ResourceQuota& quota, const Usage& usage) {
  const bool any = std::any_of(quota.hard.begin(), quota.hard.end(), [&](const auto& entry) {
    return usage.pod ? counted_of_pods(entry.first) : usage.amounts.contains(entry.first);
  });
  return any && std::all_of(quota.scopes.begin(), quota.scopes.end(),
                            [&](const api::QuotaScope& scope) { return holds(scope, usage); });
}

std::string unspecified(const api::ResourceQuota& quota, const api::PodSpec& spec) {
  if (spec.resources && !(spec.resources->requests.empty() && spec.resources->limits.empty())) return "";
  std::map<std::string_view, std::set<std::string>> missing;
  for (const auto* containers : {&spec.containers, &spec.init_containers}) {
    for (const api::Container& container : *containers) {
      const ResourceList said = compute_usage(container.resources.requests, container.resources.limits);
      for (const std::string_view required : kRequired)
        if (quota.hard.contains(required) && !said.contains(required)) missing[required].insert(container.name);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [resource, names] : missing)
    parts.push_back(fmt::format("{} for: {}", resource, fmt::join(names, ",")));
  return parts.empty() ? "" : fmt::format("must specify {}", fmt::join(parts, "; "));
}

}  // namespace berth::limits
