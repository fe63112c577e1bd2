// Pieces of what the desk writes (queueing/desk.h), for its .cc files alone.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/taint.h"
#include "queueing/desk.h"
#include "quota/status.h"

namespace berth::queueing {

using Json = nlohmann::ordered_json;

// That a patch is of this object in this version: the server refuses it otherwise.
Json metadata_json(const api::ObjectMeta& metadata);
// A pod's tolerations with those of its flavors and of its checks (a list); null: these add nothing.
Json with_tolerations(const Json& present, const std::vector<model::Toleration>& added, const Json& of_checks);
// What the checks of a workload add to the pods of a set (podSetUpdates): objects `labels`, `annotations` and
// `nodeSelector`, and the list `tolerations`.
Json pod_set_updates(const SeenWorkload& workload, const std::string& pod_set);
Note note_of(const api::ObjectMeta& metadata, const char* kind, std::string reason, std::string text,
             bool warning = false);
// It has quota, which it has to give back.
bool is_leaving(const quota::WorkloadStatus& status);
// What is stored says that it is admitted, so that its pods may come.
bool is_told(const SeenWorkload& stored);

}  // namespace berth::queueing
