#include "api/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "api/decoders.h"
#include "api/names.h"
#include "model/quantity.h"

namespace berth::api {
namespace {

// Names without a domain that a quota may have. Source: helper.IsStandardQuotaResourceName.
constexpr std::array<std::string_view, 19> kStandard = {"cpu",
                                                        "memory",
                                                        "ephemeral-storage",
                                                        "requests.cpu",
                                                        "requests.memory",
                                                        "requests.storage",
                                                        "requests.ephemeral-storage",
                                                        "limits.cpu",
                                                        "limits.memory",
                                                        "limits.ephemeral-storage",
                                                        "pods",
                                                        "resourcequotas",
                                                        "services",
                                                        "replicationcontrollers",
                                                        "secrets",
                                                        "persistentvolumeclaims",
                                                        "configmaps",
                                                        "services.nodeports",
                                                        "services.loadbalancers"};
constexpr std::array<std::string_view, 7> kOfPods = {"pods",          "cpu",          "memory",         "limits.cpu",
                                                     "limits.memory", "requests.cpu", "requests.memory"};

bool is_huge_page(std::string_view name) {
  return name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
}
bool is_standard(std::string_view name) {
  return is_huge_page(name) || std::find(kStandard.begin(), kStandard.end(), name) != kStandard.end();
}

std::string check_quota_name(std::string_view name) {
  if (std::string why = check_qualified_name(name); !why.empty()) return why;
  if (name.find('/') != std::string_view::npos || is_standard(name)) return "";
  std::string why = "must be a standard resource for quota";
  const bool gpu = name.ends_with("gpu") || name.ends_with("gpus");
  const std::string_view near = closest(name, {kStandard.begin(), kStandard.end()});
  if (gpu) return why + "; did you mean 'requests.nvidia.com/gpu'?";
  return why + (near.empty() ? "; extended resources are written requests.DOMAIN/NAME"
                             : fmt::format("; did you mean '{}'?", near));
}

// An amount as text; false if it is none. null is 0, as the API server reads it.
bool read_amount_text(const Reader& amount, std::string& text) {
  if (!amount.is_null()) return amount.read_string_or_number(text);
  text = "0";
  return true;
}

void read_hard(const Reader& reader, ResourceQuota& out) {
  if (!reader.expect(JsonType::kObject)) return;
  std::string text;
  for (Members members(reader); members.next();) {
    const std::string name(members.key());
    if (!read_amount_text(members.value(), text)) continue;
    const std::string why = reader.strict() ? check_quota_name(name) : "";
    const Result<int64_t> amount = model::parse_resource(quota_unit(name), text);
    if (!why.empty()) members.value().problem(invalid_value(name, why));
    else if (!amount) members.value().problem(amount.error().message);
    else out.hard.set(name, *amount);
  }
}

constexpr std::string_view kScopes[] = {"Terminating",          "NotTerminating", "BestEffort",
                                        "NotBestEffort",        "PriorityClass",  "CrossNamespacePodAffinity",
                                        "VolumeAttributesClass"};

void check_scope_name(const Reader& reader, const std::string& name) {
  if (!reader.strict() || std::find(std::begin(kScopes), std::end(kScopes), name) != std::end(kScopes)) return;
  const std::string_view near = closest(name, {std::begin(kScopes), std::end(kScopes)});
  reader.problem(invalid_value(
      name, near.empty() ? "unsupported scope" : fmt::format("unsupported scope; did you mean '{}'?", near)));
}

void read_scopes(const Reader& reader, ResourceQuota& out) {
  if (!reader.expect(JsonType::kArray)) return;
  for (Items items(reader); items.next();) {
    QuotaScope scope;
    if (!items.value().read(scope.name)) continue;
    check_scope_name(items.value(), scope.name);
    out.scopes.push_back(std::move(scope));
  }
}

constexpr Field<QuotaScope> kScope[] = {
    {"scopeName",
     [](const Reader& r, QuotaScope& s) {
       if (r.read(s.name)) check_scope_name(r, s.name);
     }},
    {"operator", [](const Reader& r, QuotaScope& s) { r.read(s.operator_name); }},
    {"values", [](const Reader& r, QuotaScope& s) { r.read(s.values); }},
};

// Source: validateScopedResourceSelectorRequirement.
void check_scope(const Reader& reader, const QuotaScope& scope) {
  const std::string& op = scope.operator_name;
  const bool about_values = op == "In" || op == "NotIn";
  const bool selects = scope.name == "PriorityClass" || scope.name == "VolumeAttributesClass";
  if (!about_values && op != "Exists" && op != "DoesNotExist")
    return reader.problem_at("operator", invalid_value(op,
                                                       "not a valid selector operator; write In, NotIn, Exists or "
                                                       "DoesNotExist"));
  if (!selects && op != "Exists")
    return reader.problem_at("operator", invalid_value(op, "must be 'Exists', the only operator of this scope"));
  if (about_values && scope.values.empty())
    reader.problem_at("values", required_value("must be at least one value when `operator` is 'In' or 'NotIn' for "
                                               "scope selector"));
  if (!about_values && !scope.values.empty())
    reader.problem_at("values",
                      "Invalid value: must be no value when `operator` is 'Exists' or 'DoesNotExist' for "
                      "scope selector");
}

void read_scope(const Reader& reader, QuotaScope& out) {
  out.operator_name.clear();
  read_object(reader, kScope, out);
  if (reader.strict() && reader.sound("operator")) check_scope(reader, out);
}

constexpr Field<ResourceQuota> kScopeSelector[] = {
    {"matchExpressions",
     [](const Reader& r, ResourceQuota& q) {
       std::vector<QuotaScope> scopes;
       read_list(r, scopes, &read_scope);
       q.scopes.insert(q.scopes.end(), scopes.begin(), scopes.end());
     }},
};

constexpr Field<ResourceQuota> kQuotaSpec[] = {
    {"hard", &read_hard},
    {"scopes", &read_scopes},
    {"scopeSelector", [](const Reader& r, ResourceQuota& q) { read_object(r, kScopeSelector, q); }},
};

bool scope_counts(std::string_view scope, std::string_view resource) {
  if (scope == "CrossNamespacePodAffinity" || !is_standard(resource)) return true;
  if (scope == "BestEffort") return resource == "pods";
  if (scope == "VolumeAttributesClass") return resource == "persistentvolumeclaims" || resource == "requests.storage";
  return std::find(kOfPods.begin(), kOfPods.end(), resource) != kOfPods.end();
}

// Source: validateResourceQuotaScopes.
void read_quota_spec(const Reader& reader, ResourceQuota& out) {
  read_object(reader, kQuotaSpec, out);
  if (!reader.strict() || !reader.sound("scopes") || !reader.sound("scopeSelector") || !reader.sound("hard")) return;
  std::set<std::string_view> names;
  for (const QuotaScope& scope : out.scopes) names.insert(scope.name);
  for (const auto& [one, other] : {std::pair("BestEffort", "NotBestEffort"), {"Terminating", "NotTerminating"}})
    if (names.contains(one) && names.contains(other))
      reader.problem(fmt::format("Invalid value: conflicting scopes: no pod is both {} and {}", one, other));
  for (const std::string_view scope : names)
    for (const auto& [resource, amount] : out.hard)
      if (!scope_counts(scope, resource))
        reader.problem_below({"hard", resource},
                             fmt::format("Invalid value: unsupported scope applied to resource: {} counts no {}; give "
                                         "it a quota of its own",
                                         scope, resource));
}

constexpr Field<ResourceQuota> kQuota[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, ResourceQuota& q) { read_object_meta(r, q.metadata); }},
    {"spec", &read_quota_spec},
    {"status"},
};

// ---- LimitRange -----------------------------------------------------------------------------------------------------

struct ItemTarget {
  LimitRangeItem* out;
  ResourceScope scope;  // of its resources' names
};

void read_ratios(const Reader& reader, model::ResourceList& out) {
  if (!reader.expect(JsonType::kObject)) return;
  std::string text;
  for (Members members(reader); members.next();) {
    if (!read_amount_text(members.value(), text)) continue;
    const Result<int64_t> ratio = model::parse_quantity(text, 3);
    if (!ratio) members.value().problem(ratio.error().message);
    else if (reader.strict() && *ratio < 1000)
      members.value().problem(invalid_value(text, fmt::format("ratio {} is less than 1", text)));
    else out.set(members.key(), *ratio);
  }
}

constexpr Field<ItemTarget> kItem[] = {
    {"type", [](const Reader& r, ItemTarget& t) { r.read(t.out->type); }},
    {"max", [](const Reader& r, ItemTarget& t) { read_resource_list(r, t.scope, t.out->max); }},
    {"min", [](const Reader& r, ItemTarget& t) { read_resource_list(r, t.scope, t.out->min); }},
    {"default", [](const Reader& r, ItemTarget& t) { read_resource_list(r, t.scope, t.out->default_limit); }},
    {"defaultRequest", [](const Reader& r, ItemTarget& t) { read_resource_list(r, t.scope, t.out->default_request); }},
    {"maxLimitRequestRatio", [](const Reader& r, ItemTarget& t) { read_ratios(r, t.out->max_ratio_milli); }},
};

// The larger of two must not be below the smaller one; source: ValidateLimitRange.
struct Order {
  const model::ResourceList LimitRangeItem::*smaller;
  const model::ResourceList LimitRangeItem::*larger;
  std::string_view field, smaller_name, larger_name;
};
constexpr Order kOrders[] = {
    {&LimitRangeItem::min, &LimitRangeItem::max, "min", "min value", "max value"},
    {&LimitRangeItem::min, &LimitRangeItem::default_request, "defaultRequest", "min value", "default request value"},
    {&LimitRangeItem::default_request, &LimitRangeItem::max, "defaultRequest", "default request value", "max value"},
    {&LimitRangeItem::default_request, &LimitRangeItem::default_limit, "defaultRequest", "default request value",
     "default limit value"},
    {&LimitRangeItem::min, &LimitRangeItem::default_limit, "default", "min value", "default value"},
    {&LimitRangeItem::default_limit, &LimitRangeItem::max, "default", "default value", "max value"},
};

bool may_overcommit(std::string_view resource) {
  return !model::is_extended_resource(resource) && !resource.starts_with("hugepages-");
}

void check_amounts(const Reader& reader, const LimitRangeItem& item) {
  for (const Order& order : kOrders) {
    for (const auto& [resource, amount] : item.*order.smaller) {
      const model::ResourceList& larger = item.*order.larger;
      if (!larger.contains(resource) || amount <= larger.get(resource)) continue;
      reader.problem_below({order.field, resource},
                           fmt::format("Invalid value: {} {} is greater than {} {}", order.smaller_name,
                                       model::format_resource(resource, amount), order.larger_name,
                                       model::format_resource(resource, larger.get(resource))));
    }
  }
}

// Of defaults as the API server completes them: GPUs cannot be overcommitted.
void check_equal_defaults(const Reader& reader, const LimitRangeItem& item) {
  for (const auto& [resource, amount] : item.default_limit)
    if (const model::ResourceList& request = item.default_request;
        !may_overcommit(resource) && request.contains(resource) && request.get(resource) < amount)
      reader.problem_below({"defaultRequest", resource},
                           fmt::format("Invalid value: default value {} must equal to defaultRequest value {} in {}",
                                       amount, request.get(resource), resource));
}

void check_ratios(const Reader& reader, const LimitRangeItem& item) {
  for (const auto& [resource, ratio] : item.max_ratio_milli) {
    if (!item.min.contains(resource) || !item.max.contains(resource) || item.min.get(resource) == 0) continue;
    const double most = static_cast<double>(item.max.get(resource)) / static_cast<double>(item.min.get(resource));
    if (static_cast<double>(ratio) / 1000 > most)
      reader.problem_below({"maxLimitRequestRatio", resource},
                           fmt::format("Invalid value: ratio {} is greater than max/min = {:f}",
                                       model::format_resource("cpu", ratio), most));
  }
}

void check_item(const Reader& reader, const LimitRangeItem& item) {
  if (item.type.empty()) return reader.problem_at("type", required_value());
  if (item.type == "Pod")
    for (const char* field : {"default", "defaultRequest"})
      if (has_member(reader, field))
        reader.problem_at(field, "Forbidden: may not be specified when `type` is 'Pod'; give containers defaults");
  const bool standard = item.type == "Container" || item.type == "Pod" || item.type == "PersistentVolumeClaim";
  if (!standard && item.type.find('/') == std::string::npos)
    reader.problem_at("type", invalid_value(item.type,
                                            "must be a standard limit type or fully qualified; write "
                                            "Container, Pod or PersistentVolumeClaim"));
  if (item.type == "PersistentVolumeClaim" && !item.min.contains("storage") && !item.max.contains("storage"))
    reader.problem(required_value("either minimum or maximum storage value is required, but neither was provided"));
  check_amounts(reader, item);
  check_ratios(reader, item);
}

// Source: SetDefaults_LimitRangeItem.
void complete_defaults(LimitRangeItem& item) {
  if (item.type != "Container") return;
  const auto complete = [](model::ResourceList& defaults, const model::ResourceList& from) {
    for (const auto& [resource, amount] : from)
      if (!defaults.contains(resource)) defaults.set(resource, amount);
  };
  complete(item.default_limit, item.max);
  complete(item.default_request, item.default_limit);
  complete(item.default_request, item.min);
}

void read_item(const Reader& reader, LimitRangeItem& out) {
  std::string type;
  with_member(reader, "type", [&](const Reader& member) {
    if (member.type() == JsonType::kString) member.read(type);
  });
  ItemTarget target{&out, type == "Container" || type == "Pod" ? ResourceScope::kContainer : ResourceScope::kNode};
  read_object(reader, kItem, target);
  const bool checks = reader.strict() && reader.sound("type");
  if (checks) check_item(reader, out);  // as it was written, so that nobody hears of defaults that were derived
  complete_defaults(out);
  if (checks) check_equal_defaults(reader, out);
}

void read_items(const Reader& reader, LimitRange& out) {
  read_list(reader, out.items, &read_item);
  if (!reader.strict()) return;
  std::set<std::string> types;
  for (Items items(reader); items.next();)
    with_member(items.value(), "type", [&](const Reader& type) {
      std::string text;
      if (type.type() == JsonType::kString && type.read(text) && !types.insert(text).second)
        type.problem(duplicate_value(text));
    });
}

constexpr Field<LimitRange> kLimitRangeSpec[] = {{"limits", &read_items}};

constexpr Field<LimitRange> kLimitRange[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, LimitRange& l) { read_object_meta(r, l.metadata); }},
    {"spec", [](const Reader& r, LimitRange& l) { read_object(r, kLimitRangeSpec, l); }},
};

}  // namespace

std::string_view quota_unit(std::string_view quota_resource) {
  for (const std::string_view prefix : {"requests.", "limits."})
    if (quota_resource.starts_with(prefix)) return quota_resource.substr(prefix.size());
  constexpr std::string_view kOfClass = ".storageclass.storage.k8s.io/requests.storage";
  return quota_resource.ends_with(kOfClass) ? std::string_view("storage") : quota_resource;
}

void read_value(const Reader& reader, ResourceQuota& out) {
  read_object(reader, kQuota, out);
  check_object_meta(reader, out.metadata);
}

void read_value(const Reader& reader, LimitRange& out) {
  read_object(reader, kLimitRange, out);
  check_object_meta(reader, out.metadata);
}

}  // namespace berth::api
