// Pieces of what the desk writes (queueing/desk.h), for its .cc files alone.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "queueing/desk.h"
#include "quota/flavors.h"
#include "quota/status.h"

namespace berth::queueing {

using Json = nlohmann::ordered_json;

// That a patch is of this object in this version: the server refuses it otherwise.
Json metadata_json(const api::ObjectMeta& metadata);
// What the pods of a set gain when they may start, by their flavors and by what checks say (podSetUpdates): objects
// `metadata` and `spec`, a merge patch of a pod or a template with these tolerations.
Json pod_additions(const SeenWorkload& workload, const quota::PodSetAssignment& given, const quota::FlavorTerms& terms,
                   const Json& tolerations);
// Where a check says of the pods of a set what contradicts another, their flavors or what they have already
// (`pod_template`, JSON), in Kueue's words; empty: nowhere.
std::string conflict_of(const SeenWorkload& workload, const quota::PodSetAssignment& given,
                        const quota::FlavorTerms& terms, const std::string& pod_template);
// status.conditions.
Json conditions_json(const std::vector<StoredCondition>& conditions);
// A condition, as it is to be told.
struct Told {
  std::string_view type;
  bool is = true;
  std::string reason, message;
};
// Puts a condition in the place of the one of its type.
void set_condition(Json& conditions, const Told& told, int64_t generation, Time wall);

// Of Jobs and pods that name a queue and do not wait in it.
inline constexpr const char* kQueuedCondition = "berth.dev/Queued";

// What the annotation berth.dev/evicted says.
std::string evicted_text(const std::string& why, Time wall);

Note note_of(const api::ObjectMeta& metadata, const char* kind, std::string reason, std::string text,
             bool warning = false);
// It has quota, which it has to give back.
bool is_leaving(const quota::WorkloadStatus& status);
// What is stored says that it is admitted, so that its pods may come.
bool is_told(const SeenWorkload& stored);

}  // namespace berth::queueing
