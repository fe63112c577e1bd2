#include "api/patch.h"

#include <nlohmann/json.hpp>

#include "api/volumes.h"

namespace berth::api {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string binding_json(std::string_view namespace_name, std::string_view name, std::string_view uid,
                         std::string_view node, const model::Labels& annotations) {
  Json metadata{{"name", name}, {"namespace", namespace_name}};
  if (!uid.empty()) metadata["uid"] = uid;
  for (const auto& [key, value] : annotations) metadata["annotations"][key] = value;
  return dump(Json{{"kind", "Binding"},
                   {"apiVersion", "v1"},
                   {"metadata", std::move(metadata)},
                   {"target", Json{{"kind", "Node"}, {"name", node}}}});
}

std::string pod_condition_patch_json(std::string_view uid, const Condition& condition, std::optional<Time> transition,
                                     int64_t observed_generation, std::optional<std::string_view> nominated_node) {
  Json entry{{"type", condition.type}};
  if (observed_generation != 0) entry["observedGeneration"] = observed_generation;
  entry["status"] = condition.status;
  entry["lastProbeTime"] = nullptr;
  if (transition) entry["lastTransitionTime"] = format_rfc3339(*transition);
  if (!condition.reason.empty()) entry["reason"] = condition.reason;
  if (!condition.message.empty()) entry["message"] = condition.message;
  Json status;
  status["$setElementOrder/conditions"] = Json::array({Json{{"type", condition.type}}});
  status["conditions"] = Json::array({std::move(entry)});
  if (nominated_node) status["nominatedNodeName"] = nominated_node->empty() ? Json() : Json(*nominated_node);
  Json patch;
  if (!uid.empty()) patch["metadata"]["uid"] = uid;
  patch["status"] = std::move(status);
  return dump(patch);
}

std::string delete_options_json(std::string_view uid) {
  return dump(Json{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"preconditions", Json{{"uid", uid}}}});
}

std::string selected_node_patch_json(std::string_view claim_uid, std::string_view node) {
  Json metadata{{"uid", claim_uid}};
  metadata["annotations"][std::string(kSelectedNode)] = node;
  return dump(Json{{"metadata", std::move(metadata)}});
}

std::string claim_reference_patch_json(std::string_view resource_version, std::string_view claim_namespace,
                                       std::string_view claim_name, std::string_view claim_uid) {
  Json metadata{{"resourceVersion", resource_version}};
  metadata["annotations"][std::string(kBoundByController)] = "yes";
  const Json reference{{"kind", "PersistentVolumeClaim"},
                       {"namespace", claim_namespace},
                       {"name", claim_name},
                       {"uid", claim_uid},
                       {"apiVersion", "v1"}};
  return dump(Json{{"metadata", std::move(metadata)}, {"spec", Json{{"claimRef", reference}}}});
}

std::string node_patch_json(const NodePatch& patch) {
  Json metadata{{"resourceVersion", patch.resource_version}};
  for (const auto& [name, value] : patch.annotations) metadata["annotations"][name] = value;
  for (const auto& [name, value] : patch.labels) metadata["labels"][name] = value ? Json(*value) : Json();
  return dump(Json{{"metadata", std::move(metadata)}});
}

}  // namespace berth::api
