#include "queueing/write_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/kueue_names.h"

namespace berth::queueing {
namespace {

Json toleration_json(const model::Toleration& toleration) {
  constexpr std::string_view kOperators[] = {"Equal", "Exists", "Lt", "Gt"};
  Json out = {{"operator", kOperators[static_cast<size_t>(toleration.op)]}};
  if (!toleration.key.empty()) out["key"] = toleration.key;
  if (!toleration.value.empty()) out["value"] = toleration.value;
  if (!toleration.any_effect) out["effect"] = model::to_string(toleration.effect);
  return out;
}

// A pod's tolerations with those of its flavors and of its checks (a list); null: these add nothing.
Json with_tolerations(const Json& present, const std::vector<model::Toleration>& added, const Json& of_checks) {
  Json out = present.is_array() ? present : Json::array();
  const size_t before = out.size();
  const auto add = [&out](Json one) {
    if (std::ranges::find(out, one) == out.end()) out.push_back(std::move(one));
  };
  for (const Json& toleration : of_checks) add(toleration);
  for (const model::Toleration& toleration : added) add(toleration_json(toleration));
  return out.size() == before ? Json() : out;
}

// What the checks of a workload add to the pods of a set: objects `labels`, `annotations` and `nodeSelector`, and the
// list `tolerations`.
Json pod_set_updates(const SeenWorkload& workload, const std::string& pod_set) {
  Json out = {{"labels", Json::object()},
              {"annotations", Json::object()},
              {"nodeSelector", Json::object()},
              {"tolerations", Json::array()}};
  for (const StoredCheck& check : workload.checks) {
    const Json stored = Json::parse(check.json);
    for (const Json& update : stored.value("podSetUpdates", Json::array())) {
      if (update.value("name", "") != pod_set) continue;
      for (const char* member : {"labels", "annotations", "nodeSelector"})
        out[member].update(update.value(member, Json::object()));
      for (const Json& toleration : update.value("tolerations", Json::array()))
        out["tolerations"].push_back(toleration);
    }
  }
  return out;
}

}  // namespace

Json metadata_json(const api::ObjectMeta& metadata) {
  return {{"uid", metadata.uid}, {"resourceVersion", metadata.resource_version}};
}

Json pod_additions(const SeenWorkload& workload, const quota::PodSetAssignment& given, const quota::FlavorTerms& terms,
                   const Json& tolerations) {
  const Json more = pod_set_updates(workload, given.name);
  Json out = {{"metadata", {{"annotations", more["annotations"]}, {"labels", more["labels"]}}},
              {"spec", Json::object()}};
  out["metadata"]["annotations"][std::string(api::kWorkloadAnnotation)] = workload.workload.metadata.name;
  out["metadata"]["labels"][std::string(api::kPodSetLabel)] = given.name;
  Json selector = more["nodeSelector"], added = with_tolerations(tolerations, terms.tolerations, more["tolerations"]);
  for (const auto& [key, value] : terms.node_labels) selector[key] = value;
  if (!selector.empty()) out["spec"]["nodeSelector"] = std::move(selector);
  if (!added.is_null()) out["spec"]["tolerations"] = std::move(added);
  return out;
}

std::string conflict_of(const SeenWorkload& workload, const quota::PodSetAssignment& given,
                        const quota::FlavorTerms& terms, const std::string& pod_template) {
  if (workload.checks.empty()) return "";
  const Json present = Json::parse(pod_template);
  Json known = Json::object();
  for (const char* member : {"labels", "annotations"})
    known[member] = present.value("metadata", Json::object()).value(member, Json::object());
  known["nodeSelector"] = present.value("spec", Json::object()).value("nodeSelector", Json::object());
  for (const auto& [key, value] : terms.node_labels) known["nodeSelector"][key] = value;
  for (const StoredCheck& check : workload.checks) {
    const Json stored = Json::parse(check.json);
    for (const Json& update : stored.value("podSetUpdates", Json::array())) {
      if (update.value("name", "") != given.name) continue;
      for (const char* member : {"labels", "annotations", "nodeSelector"}) {
        const Json added = update.value(member, Json::object());
        for (const auto& [key, value] : added.items()) {
          Json& before = known[member][key];
          if (!before.is_null() && before != value)
            return fmt::format(
                "invalid admission check PodSetUpdate: conflict for {}: conflict for key={}, value1={}, value2={}",
                member, key, before.get<std::string>(), value.get<std::string>());
          before = value;
        }
      }
    }
  }
  return "";
}

Json conditions_json(const std::vector<StoredCondition>& conditions) {
  Json out = Json::array();
  for (const StoredCondition& one : conditions) {
    Json condition = {{"type", one.type}, {"status", one.status}, {"lastTransitionTime", one.since}};
    condition["reason"] = one.reason;
    condition["message"] = one.message;
    if (one.observed_generation > 0) condition["observedGeneration"] = one.observed_generation;
    out.push_back(std::move(condition));
  }
  return out;
}

void set_condition(Json& conditions, const Told& told, int64_t generation, Time wall) {
  Json condition = {{"type", told.type}, {"status", told.is ? "True" : "False"}};
  condition["reason"] = told.reason;
  condition["message"] = told.message;
  if (generation > 0) condition["observedGeneration"] = generation;
  const auto at = std::ranges::find_if(conditions, [&](const Json& one) { return one.value("type", "") == told.type; });
  const bool same = at != conditions.end() && at->value("status", "") == condition["status"];
  condition["lastTransitionTime"] = same ? at->value("lastTransitionTime", "") : format_rfc3339(wall);
  if (at == conditions.end()) conditions.push_back(std::move(condition));
  else *at = std::move(condition);
}

std::string evicted_text(const std::string& why, Time wall) { return format_rfc3339(wall) + ": " + why; }

Note note_of(const api::ObjectMeta& metadata, const char* kind, std::string reason, std::string text, bool warning) {
  return {kind, metadata.namespace_name, metadata.name, metadata.uid, std::move(reason), std::move(text), warning};
}

bool is_leaving(const quota::WorkloadStatus& status) {
  const bool holds =
      status.phase == quota::WorkloadPhase::kAdmitted || status.phase == quota::WorkloadPhase::kQuotaReserved;
  return holds && !status.evicted.empty();
}

bool is_told(const SeenWorkload& stored) { return stored.is("Admitted") && stored.admission && !stored.is("Evicted"); }

}  // namespace berth::queueing
