#include "webhook/kept_members.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/names.h"
#include "model/quantity.h"
#include "webhook/kept.h"
#include "webhook/topology_assignment.h"

namespace berth::webhook {
namespace {

using Json = nlohmann::json;

constexpr size_t kChecksMax = 64, kCheckNameBytesMax = 316, kWeightsMax = 16;  // as in deploy/crds

bool is_name(const Json& value) {
  return value.is_string() && api::check_dns1123_subdomain(value.get_ref<const std::string&>()).empty();
}

bool is_check_names(const Json& value) {
  return value.is_array() && value.size() <= kChecksMax && std::ranges::all_of(value, [](const Json& name) {
           return name.is_string() && name != "" && name.get_ref<const std::string&>().size() <= kCheckNameBytesMax;
         });
}

bool is_priority_source(const Json& value) {
  return value == "kueue.x-k8s.io/workloadpriorityclass" || value == "scheduling.k8s.io/priorityclass" || value == "";
}

bool is_preference(const Json& value) {
  return value == "BorrowingOverPreemption" || value == "PreemptionOverBorrowing";
}

bool is_borrow(const Json& value) { return value == "Borrow"; }
bool is_preempt(const Json& value) { return value == "Preempt"; }
bool is_integer(const Json& value) { return value.is_number_integer(); }

bool is_weights(const Json& value) {
  return value.is_object() && value.size() <= kWeightsMax && std::ranges::all_of(value, [](const Json& weight) {
           if (!weight.is_string() && !weight.is_number_integer()) return false;
           const auto amount = model::parse_quantity(weight.is_string() ? weight.get<std::string>() : weight.dump());
           return amount && *amount >= 0;
         });
}

// {migration: {mode, constraints: {lastAcceptableFlavorName}}}
bool is_concurrent_admission(const Json& value) {
  if (!value.is_object() || value.size() != 1 || !value.contains("migration")) return false;
  const Json& migration = value["migration"];
  if (!migration.is_object() || !migration.contains("mode")) return false;
  if (migration["mode"] != "TryPreferredFlavors" && migration["mode"] != "RetainFirstAdmission") return false;
  if (!migration.contains("constraints")) return migration.size() == 1;
  const Json& constraints = migration["constraints"];
  if (migration.size() != 2 || !constraints.is_object()) return false;
  if (!constraints.contains("lastAcceptableFlavorName")) return constraints.empty();
  return constraints.size() == 1 && is_name(constraints["lastAcceptableFlavorName"]);
}

struct Member {
  std::string_view version, kind;
  std::string_view at;  // path of the object with the member, steps joined by '/', '*' for an item of a list
  std::string_view name;
  bool (*has_form)(const Json& value) = nullptr;
};
constexpr Member kMembers[] = {
    {"v1beta1", "ClusterQueue", "spec", "admissionChecks", &is_check_names},
    {"v1beta1", "ClusterQueue", "spec/flavorFungibility", "whenCanBorrow", &is_borrow},
    {"v1beta1", "ClusterQueue", "spec/flavorFungibility", "whenCanPreempt", &is_preempt},
    {"v1beta1", "Cohort", "spec", "parent", &is_name},
    {"v1beta1", "Workload", "spec", "priorityClassName", &is_name},
    {"v1beta1", "Workload", "spec", "priorityClassSource", &is_priority_source},
    {"v1beta1", "AdmissionCheck", "spec", "retryDelayMinutes", &is_integer},
    {"v1beta2", "ClusterQueue", "spec", "concurrentAdmissionPolicy", &is_concurrent_admission},
    {"v1beta2", "ClusterQueue", "spec/flavorFungibility", "preference", &is_preference},
    {"v1beta2", "ResourceFlavor", "spec", "resourceWeights", &is_weights},
};

std::string joined(const Json& path) {
  std::string out;
  for (const Json& step : path) {
    if (!out.empty()) out += '/';
    out += step.is_string() ? step.get_ref<const std::string&>() : "*";
  }
  return out;
}

// The topology assignment of a pod set in other slices. As many domains as there are, so that comparing them costs no
// more than they do.
bool is_other_slices(const Json& is, const Json& was) {
  constexpr const char* kMember = "topologyAssignment";
  if (is.size() != 1 || was.size() != 1 || !is.contains(kMember) || !was.contains(kMember)) return false;
  const auto before = domain_count(is[kMember]), after = domain_count(was[kMember]);
  return before && after && *before == *after;
}

}  // namespace

bool may_restore(std::string_view version, std::string_view kind, const Json& note) {
  if (!is_note(note)) return false;
  const std::string at = joined(note["at"]);
  if (version == "v1beta2" && kind == "Workload" && at == "status/admission/podSetAssignments/*")
    return is_other_slices(note["is"], note["was"]);
  const auto allowed = [&](const std::string& name, const Json& value) {
    return std::ranges::any_of(kMembers, [&](const Member& member) {
      return member.version == version && member.kind == kind && member.at == at && member.name == name &&
             member.has_form(value);
    });
  };
  for (const auto& [name, value] : note["was"].items())
    if (!allowed(name, value)) return false;
  return !note["was"].empty();
}

}  // namespace berth::webhook
