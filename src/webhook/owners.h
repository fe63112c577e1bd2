// Owners: controllers whose objects wait for quota as a whole, so that what they make does not wait once more.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace berth::webhook {

// The kind of the controller that made the object, such as "Job" or "JobSet", if it is one whose objects wait as a
// whole in Kueue; empty otherwise. The conditions in deploy/webhook.yaml say the same.
std::string whole_of(const nlohmann::json& object);

// It waits by itself: it names a queue, and is no part of such a whole.
bool waits(const nlohmann::json& object);

// It comes into a queue with this update: it named none before, or was part of a whole.
bool comes_to_wait(const nlohmann::json& object, const nlohmann::json& before);

// Whether Berth lets such a whole wait: a Job. Of the others nobody counts the quota.
bool is_managed_whole(const std::string& kind);

}  // namespace berth::webhook
