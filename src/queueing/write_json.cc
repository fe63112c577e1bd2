#include "queueing/write_json.h"

#include <algorithm>
#include <utility>

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

}  // namespace

Json metadata_json(const api::ObjectMeta& metadata) {
  return {{"uid", metadata.uid}, {"resourceVersion", metadata.resource_version}};
}

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
