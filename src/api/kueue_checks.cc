#include "api/kueue_checks.h"

#include <utility>

#include "api/names.h"

namespace berth::api {
namespace {

constexpr Field<model::AdmissionCheckRule> kRule[] = {
    {"name", [](const Reader& r, model::AdmissionCheckRule& c) { r.read(c.check); }},
    {"onFlavors", [](const Reader& r, model::AdmissionCheckRule& c) { r.read(c.flavors); }},
};
void read_rule(const Reader& reader, model::AdmissionCheckRule& out) {
  read_object(reader, kRule, out);
  if (out.check.empty() && reader.sound("name")) reader.problem_at("name", required_value("name an AdmissionCheck"));
}

using Rules = std::vector<model::AdmissionCheckRule>;
constexpr Field<Rules> kStrategy[] = {
    {"admissionChecks", [](const Reader& r, Rules& rules) { read_list(r, rules, &read_rule); }},
};

constexpr Field<CheckParameters> kParameters[] = {
    {"apiGroup", [](const Reader& r, CheckParameters& p) { r.read(p.api_group); }},
    {"kind", [](const Reader& r, CheckParameters& p) { r.read(p.kind); }},
    {"name", [](const Reader& r, CheckParameters& p) { r.read(p.name); }},
};
constexpr Field<AdmissionCheck> kSpec[] = {
    {"controllerName", [](const Reader& r, AdmissionCheck& c) { r.read(c.check.controller); }},
    {"parameters", [](const Reader& r, AdmissionCheck& c) { read_object(r, kParameters, c.parameters.emplace()); }},
    {"retryDelayMinutes"},
};
constexpr Field<AdmissionCheck> kCheck[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, AdmissionCheck& c) { read_object_meta(r, c.metadata); }},
    {"spec", [](const Reader& r, AdmissionCheck& c) { read_object(r, kSpec, c); }},
    {"status"},
};

}  // namespace

std::vector<Condition> conditions_of(const Reader& object) {
  std::vector<Condition> conditions;
  with_member(object, "status", [&](const Reader& status) {
    with_member(status, "conditions", [&](const Reader& r) { read_list(r, conditions, &read_condition); });
  });
  return conditions;
}

void read_check_names(const Reader& reader, Rules& out) {
  std::vector<std::string> names;
  if (!reader.read(names)) return;
  for (std::string& name : names) out.push_back({std::move(name)});
}

void read_check_strategy(const Reader& reader, Rules& out) { read_object(reader, kStrategy, out); }

void read_admission_check(const Reader& reader, AdmissionCheck& out) {
  read_object(reader, kCheck, out);
  check_object_meta(reader, out.metadata);
  out.check.name = out.metadata.name;
  for (const Condition& condition : conditions_of(reader))
    if (condition.type == "Active") out.active = condition.status == "True";
  out.check.active = out.active.value_or(true);
  if (out.check.controller.empty() && reader.sound({"spec", "controllerName"}))
    reader.problem_below({"spec", "controllerName"}, required_value("name the controller that sees to the check"));
}

}  // namespace berth::api
