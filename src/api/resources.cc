#include <fmt/format.h>

#include "api/decoders.h"
#include "api/names.h"
#include "model/quantity.h"

namespace berth::api {
namespace {

constexpr std::string_view kStandardContainer[] = {"cpu", "memory", "ephemeral-storage"};

constexpr std::string_view kNotStandard = "must be a standard resource for containers";
constexpr std::string_view kHugePages = "hugepages-";
bool is_huge_page(std::string_view name) { return name.starts_with(kHugePages); }
bool is_native(std::string_view name) {
  return name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
}
// IsIntegerResourceName and IsOvercommitAllowed of k8s.io/kubernetes/pkg/apis/core/helper.
bool is_integer(std::string_view name) { return name == "pods" || model::is_extended_resource(name); }
bool may_overcommit(std::string_view name) { return is_native(name) && !is_huge_page(name); }

bool is_standard_container(std::string_view name) {
  for (const std::string_view standard : kStandardContainer)
    if (name == standard) return true;
  return is_huge_page(name);
}

// Why the API server would refuse the resource's name here; empty if it would not.
std::string check_resource_name(std::string_view name, ResourceScope scope) {
  if (std::string why = check_qualified_name(name); !why.empty()) return why;
  const bool qualified = name.find('/') != std::string_view::npos;
  switch (scope) {
    case ResourceScope::kContainer:
      if (!qualified && !is_standard_container(name)) {
        const std::string_view near =
            closest(name, {"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "gpu", "gpus"});
        if (near.starts_with("gpu")) return std::string(kNotStandard) + "; did you mean 'nvidia.com/gpu'?";
        return std::string(kNotStandard) + (near.empty() ? "; extended resources have a domain, such as nvidia.com/gpu"
                                                         : fmt::format("; did you mean '{}'?", near));
      }
      if (qualified && !is_native(name) && !model::is_extended_resource(name))
        return "doesn't follow extended resource name standard";
      return "";
    case ResourceScope::kPod:
      return name == "cpu" || name == "memory" || is_huge_page(name)
                 ? ""
                 : "must be cpu, memory or hugepages at pod level; ask for others in a container";
    case ResourceScope::kNode: return "";
  }
  return "";
}

// IsHugePageResourceValueDivisible: in whole pages, whose size the name says.
bool whole_pages(std::string_view name, int64_t bytes) {
  const Result<int64_t> page = model::parse_quantity(name.substr(kHugePages.size()));
  return page && *page > 0 && bytes % *page == 0;
}

void check_amount(const Reader& amount, const std::string& name, const std::string& text, ResourceScope scope) {
  if (const std::string why = check_resource_name(name, scope); !why.empty())
    return amount.problem(invalid_value(name, why));
  if (const Result<int64_t> bytes = model::parse_quantity(text);
      scope != ResourceScope::kNode && is_huge_page(name) && bytes && !whole_pages(name, *bytes))
    amount.problem(invalid_value(text, fmt::format("{} is not positive integer multiple of {}", text, name)));
  if (!is_integer(name)) return;
  const Result<int64_t> millis = model::parse_quantity(text, 3);
  if (millis && *millis % 1000 != 0)
    amount.problem(invalid_value(text, "must be an integer; devices cannot be divided in a request"));
}

struct Requirements {
  ResourceRequirements* out;
  ResourceScope scope;
};

// A request against its limit. `limit_known`: the limit could be read, or there is none.
void check_request(const Reader& requests, const std::string& name, int64_t amount, const model::ResourceList& limits,
                   bool limit_known) {
  if (!limit_known || !requests.sound(name)) return;
  const std::string text = model::format_resource(name, amount);
  const std::string limit = model::format_resource(name, limits.get(name));
  if (!limits.contains(name)) {
    if (!may_overcommit(name))
      requests.contradiction_at(
          name, required_value(fmt::format("Limit must be set for non overcommitable resources; add limits: {{{}: {}}}",
                                           name, text)));
  } else if (!may_overcommit(name) && amount != limits.get(name)) {
    requests.contradiction_at(name, invalid_value(text, fmt::format("must be equal to {} limit of {}", name, limit)));
  } else if (amount > limits.get(name)) {
    requests.contradiction_at(
        name, invalid_value(text, fmt::format("must be less than or equal to {} limit of {}", name, limit)));
  }
}

void read_claims(const Reader& reader, Requirements& x) {
  if (reader.strict() && x.scope == ResourceScope::kPod)
    reader.problem("Forbidden: claims may not be set for Resources at pod-level; name them in a container");
}

constexpr Field<Requirements> kRequirements[] = {
    {"limits", [](const Reader& r, Requirements& x) { read_resource_list(r, x.scope, x.out->limits); }},
    {"requests", [](const Reader& r, Requirements& x) { read_resource_list(r, x.scope, x.out->requests); }},
    {"claims", &read_claims},
};

// True if all but amounts of huge pages could be read, so that it is known whether cpu or memory is among them.
bool others_are_sound(const Reader& requirements) {
  bool sound = true;
  for (const std::string_view list : {"requests", "limits"})
    sound = sound && requirements.sound({list, "cpu"}) && requirements.sound({list, "memory"});
  for (Members lists(requirements); lists.next();)
    for (Members amounts(lists.value()); amounts.next();)
      sound = sound && (is_huge_page(amounts.key()) || lists.value().sound(amounts.key()));
  return sound;
}

void check_requests(const Reader& reader, const ResourceRequirements& requirements) {
  for (Members members(reader); members.next();) {
    if (members.key() != "requests") continue;
    for (const auto& [name, amount] : requirements.requests)
      check_request(members.value(), name, amount, requirements.limits, reader.sound({"limits", name}));
  }
}

void default_requests(ResourceRequirements& requirements) {
  for (const auto& [name, amount] : requirements.limits)
    if (!requirements.requests.contains(name)) requirements.requests.set(name, amount);
}

// An amount in its canonical unit. A server takes amounts beyond any int64 from users; they count as the largest. What
// a node says that it has is not rounded so. What is wrong is told of the text in the file: 1e19 reaches the server as
// 1e+19.
Result<int64_t> read_amount(const Reader& amount, std::string_view name, const std::string& text, ResourceScope scope) {
  const bool refused = amount.strict() || scope == ResourceScope::kNode;
  Result<int64_t> value =
      model::parse_resource(name, text, refused ? model::Overflow::kRefused : model::Overflow::kSaturates);
  if (value || amount.type() == JsonType::kString) return value;
  const std::string source = amount.source();
  const Result<int64_t> same = model::parse_resource(name, source);
  return same ? value : same;
}

}  // namespace

void read_resource_list(const Reader& reader, ResourceScope scope, model::ResourceList& out) {
  if (!reader.expect(JsonType::kObject)) return;
  std::string text;
  for (Members members(reader); members.next();) {
    const std::string name(members.key());
    if (members.value().is_null()) text = "0";  // as the API server reads it
    else if (!members.value().read_string_or_number(text)) continue;
    const Result<int64_t> amount = read_amount(members.value(), name, text, scope);
    if (!amount) {
      members.value().problem(amount.error().message);
      continue;
    }
    if (reader.strict()) check_amount(members.value(), name, text, scope);
    out.set(name, *amount);
  }
}

void check_huge_pages(const Reader& reader, const ResourceRequirements& requirements,
                      const model::ResourceList& defaults) {
  bool computes = false, huge = false;
  for (const auto* list : {&requirements.requests, &requirements.limits, &defaults}) {
    for (const auto& [name, amount] : *list) {
      computes |= name == "cpu" || name == "memory";
      huge |= is_huge_page(name) && list != &defaults;
    }
  }
  if (huge && !computes && others_are_sound(reader))
    reader.contradiction("Forbidden: HugePages require cpu or memory; add a cpu or memory request");
}

void read_container_resources(const Reader& reader, ResourceRequirements& out) {
  Requirements target{&out, ResourceScope::kContainer};
  read_object(reader, kRequirements, target);
  if (reader.strict()) check_huge_pages(reader, out, {});
  if (reader.strict()) check_requests(reader, out);
  default_requests(out);
}

void read_pod_resources(const Reader& reader, ResourceRequirements& out) {
  Requirements target{&out, ResourceScope::kPod};
  read_object(reader, kRequirements, target);
  if (reader.strict()) check_requests(reader, out);
}

}  // namespace berth::api
