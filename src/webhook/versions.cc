#include "webhook/versions.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "webhook/object.h"
#include "webhook/topology_assignment.h"

namespace berth::webhook {
namespace {

using Json = nlohmann::json;

// The member of an object that is an object, too; null otherwise.
Json* part(Json* object, const char* key) {
  if (object == nullptr) return nullptr;
  const auto member = object->find(key);
  return member != object->end() && member->is_object() ? &*member : nullptr;
}

void rename(Json* object, const char* from, const char* to) {
  if (object == nullptr || !object->contains(from)) return;
  Json value = std::move((*object)[from]);
  object->erase(from);
  (*object)[to] = std::move(value);
}

void drop(Json* object, const char* key) {
  if (object != nullptr) object->erase(key);
}

// The names in a list as rules for all flavors; nothing if it is no list of names, or an empty one.
std::optional<Json> rules_of(const Json& names) {
  if (!names.is_array() || names.empty()) return {};
  Json rules = Json::array();
  for (const Json& name : names) {
    if (!name.is_string()) return {};
    rules.push_back(Json{{"name", name}});
  }
  return rules;
}

void cluster_queue_up(Json* spec, Json* status, UnpackBudget&) {
  drop(status, "pendingWorkloadsStatus");
  if (spec == nullptr) return;
  rename(spec, "cohort", "cohortName");
  if (const auto checks = spec->find("admissionChecks"); checks != spec->end()) {
    if (auto rules = rules_of(*checks)) (*spec)["admissionChecksStrategy"] = Json{{"admissionChecks", *rules}};
    spec->erase("admissionChecks");
  }
  if (Json* fungibility = part(spec, "flavorFungibility")) {
    if (text_of(*fungibility, "whenCanBorrow") == "Borrow") (*fungibility)["whenCanBorrow"] = "MayStopSearch";
    if (text_of(*fungibility, "whenCanPreempt") == "Preempt") (*fungibility)["whenCanPreempt"] = "MayStopSearch";
  }
}

void cluster_queue_down(Json* spec, Json*, UnpackBudget&) {
  rename(spec, "cohortName", "cohort");
  drop(spec, "concurrentAdmissionPolicy");
  drop(part(spec, "flavorFungibility"), "preference");
}

void cohort_up(Json* spec, Json*, UnpackBudget&) { rename(spec, "parent", "parentName"); }

void local_queue_up(Json*, Json* status, UnpackBudget&) {
  rename(status, "flavorUsage", "flavorsUsage");
  drop(status, "flavors");
}
void local_queue_down(Json*, Json* status, UnpackBudget&) { rename(status, "flavorsUsage", "flavorUsage"); }

void flavor_down(Json* spec, Json*, UnpackBudget&) { drop(spec, "resourceWeights"); }

void check_up(Json* spec, Json*, UnpackBudget&) { drop(spec, "retryDelayMinutes"); }

struct PrioritySource {
  std::string_view source;  // of v1beta1
  std::string_view group, kind;
};
constexpr PrioritySource kPrioritySources[] = {
    {"kueue.x-k8s.io/workloadpriorityclass", "kueue.x-k8s.io", "WorkloadPriorityClass"},
    {"scheduling.k8s.io/priorityclass", "scheduling.k8s.io", "PriorityClass"},
};

// Translates the topology assignment of each pod set; one that has no other form is left out.
template <typename Translate>
void translate_assignments(Json* status, Translate translate) {
  Json* admission = part(status, "admission");
  if (admission == nullptr || !admission->contains("podSetAssignments")) return;
  Json& sets = (*admission)["podSetAssignments"];
  if (!sets.is_array()) return;
  for (Json& set : sets) {
    if (!set.is_object() || !set.contains("topologyAssignment")) continue;
    if (auto other = translate(set["topologyAssignment"])) set["topologyAssignment"] = std::move(*other);
    else set.erase("topologyAssignment");
  }
}

void workload_up(Json* spec, Json* status, UnpackBudget&) {
  rename(status, "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds");
  translate_assignments(status, &pack_domains);
  if (spec == nullptr) return;
  const std::string name = text_of(*spec, "priorityClassName"), source = text_of(*spec, "priorityClassSource");
  spec->erase("priorityClassName");
  spec->erase("priorityClassSource");
  for (const PrioritySource& known : kPrioritySources)
    if (source == known.source && !name.empty())
      (*spec)["priorityClassRef"] = Json{{"group", known.group}, {"kind", known.kind}, {"name", name}};
}

void workload_down(Json* spec, Json* status, UnpackBudget& budget) {
  rename(status, "accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds");
  budget.object_bytes = kObjectUnpackedBytesMax;
  translate_assignments(status, [&](const Json& assignment) { return unpack_domains(assignment, budget); });
  const Json* reference = part(spec, "priorityClassRef");
  if (reference == nullptr) return drop(spec, "priorityClassRef");
  const std::string group = text_of(*reference, "group"), kind = text_of(*reference, "kind");
  const std::string name = text_of(*reference, "name");
  spec->erase("priorityClassRef");
  for (const PrioritySource& known : kPrioritySources)
    if (group == known.group && kind == known.kind && !name.empty()) {
      (*spec)["priorityClassName"] = name;
      (*spec)["priorityClassSource"] = known.source;
    }
}

using Translation = void (*)(Json* spec, Json* status, UnpackBudget& budget);  // null where the object has none
struct KindTranslation {
  std::string_view kind;
  Translation up = nullptr, down = nullptr;
};
constexpr KindTranslation kKinds[] = {
    {"ClusterQueue", &cluster_queue_up, &cluster_queue_down},
    {"Cohort", &cohort_up, nullptr},
    {"LocalQueue", &local_queue_up, &local_queue_down},
    {"ResourceFlavor", nullptr, &flavor_down},
    {"Workload", &workload_up, &workload_down},
    {"AdmissionCheck", &check_up, nullptr},
};

void translate(Json& object, Translation KindTranslation::*direction, UnpackBudget& budget) {
  if (!object.is_object()) return;
  const std::string kind = text_of(object, "kind");
  for (const KindTranslation& known : kKinds)
    if (known.kind == kind && known.*direction != nullptr)
      (known.*direction)(part(&object, "spec"), part(&object, "status"), budget);
}

}  // namespace

void translate_up(Json& object, UnpackBudget& budget) { translate(object, &KindTranslation::up, budget); }
void translate_down(Json& object, UnpackBudget& budget) { translate(object, &KindTranslation::down, budget); }

}  // namespace berth::webhook
