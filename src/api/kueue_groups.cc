#include "api/kueue_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "api/decoders.h"
#include "api/names.h"
#include "model/quantity.h"

namespace berth::api {
namespace {

// An amount of quota; the name of its resource decides the unit.
void read_amount(const Reader& reader, std::string_view resource, int64_t& out) {
  std::string text;
  if (!reader.read_string_or_number(text)) return;
  const Result<int64_t> amount = model::parse_quota(resource, text);
  if (amount) out = *amount;
  else reader.problem(amount.error().message);
}

struct NamedQuota {
  std::string name;
  std::string nominal, borrowing, lending;
};
constexpr Field<NamedQuota> kResource[] = {
    {"name", [](const Reader& r, NamedQuota& q) { r.read(q.name); }},
    {"nominalQuota"},
    {"borrowingLimit"},
    {"lendingLimit"},
};

void read_resource_quota(const Reader& reader, model::FlavorQuotas& out) {
  NamedQuota named;
  read_object(reader, kResource, named);
  model::ResourceQuota quota;
  with_member(reader, "nominalQuota", [&](const Reader& r) { read_amount(r, named.name, quota.nominal); });
  const auto limit = [&](std::string_view key, std::optional<int64_t>& to) {
    with_member(reader, key, [&](const Reader& r) {
      if (!r.is_null()) read_amount(r, named.name, to.emplace());
    });
  };
  limit("borrowingLimit", quota.borrowing_limit);
  limit("lendingLimit", quota.lending_limit);
  if (quota.lending_limit && *quota.lending_limit > quota.nominal)
    reader.problem_at("lendingLimit", "Invalid value: must be less than or equal to the nominalQuota");
  if (!out.resources.emplace(named.name, quota).second) reader.problem_at("name", duplicate_value(named.name));
}

constexpr Field<model::FlavorQuotas> kFlavorQuotas[] = {
    {"name", [](const Reader& r, model::FlavorQuotas& f) { r.read(f.flavor); }},
    {"resources",
     [](const Reader& r, model::FlavorQuotas& f) {
       if (!r.expect(JsonType::kArray)) return;
       for (Items items(r); items.next();) read_resource_quota(items.value(), f);
     }},
};
void read_flavor_quotas(const Reader& reader, model::FlavorQuotas& out) { read_object(reader, kFlavorQuotas, out); }

constexpr Field<model::ResourceGroup> kGroup[] = {
    {"coveredResources", [](const Reader& r, model::ResourceGroup& g) { r.read(g.resources); }},
    {"flavors", [](const Reader& r, model::ResourceGroup& g) { read_list(r, g.flavors, &read_flavor_quotas); }},
};

void read_group(const Reader& reader, model::ResourceGroup& out) {
  read_object(reader, kGroup, out);
  if (out.resources.empty()) reader.problem_at("coveredResources", required_value("name at least one resource"));
  for (size_t i = 0; i < out.flavors.size(); ++i)
    for (const std::string& resource : out.resources)
      if (!out.flavors[i].resources.contains(resource))
        reader.problem_at("flavors", i,
                          fmt::format("Invalid value: flavor '{}' says no quota of '{}', which the group covers",
                                      out.flavors[i].flavor, resource));
}

}  // namespace

// A resource, or a flavor, is in one group: else it would be counted twice.
void read_groups(const Reader& reader, std::vector<model::ResourceGroup>& out) {
  read_list(reader, out, &read_group);
  if (out.empty()) return;
  std::set<std::string> resources, flavors;
  for (Items groups(reader); groups.next();) {
    const model::ResourceGroup& group = out[groups.index()];
    for (size_t i = 0; i < group.resources.size(); ++i)
      if (!resources.insert(group.resources[i]).second)
        groups.value().problem_at("coveredResources", i, duplicate_value(group.resources[i]));
    with_member(groups.value(), "flavors", [&](const Reader& list) {
      if (group.flavors.empty()) return;
      for (Items named(list); named.next();)
        if (const std::string& flavor = group.flavors[named.index()].flavor; !flavors.insert(flavor).second)
          named.value().problem_at("name", duplicate_value(flavor));
    });
  }
}

void check_no_limits(const Reader& object, const std::vector<model::ResourceGroup>& groups, std::string_view needed) {
  const auto is_limited = [](const auto& quota) {
    return quota.second.borrowing_limit.has_value() || quota.second.lending_limit.has_value();
  };
  for (const model::ResourceGroup& group : groups)
    for (const model::FlavorQuotas& flavor : group.flavors)
      if (std::ranges::any_of(flavor.resources, is_limited))
        return object.problem_below(
            {"spec", "resourceGroups"},
            fmt::format("Invalid value: borrowingLimit and lendingLimit need a {}: there is nobody to borrow from or "
                        "lend to",
                        needed));
}

}  // namespace berth::api
