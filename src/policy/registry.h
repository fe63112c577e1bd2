// The registry of policies: every PolicyInfo that a file in this folder exports, found by the build, sorted by name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/policy.h"

namespace berth::policy {

// All policies, by name. Generated from the folder: see cmake/policies.cmake.
const std::vector<const engine::PolicyInfo*>& all_policies();

// The set that an engine runs: every filter, and every score with its weight from `weights` or else its default.
// Unknown names, filters among the names and weights outside 0 … 10,000 are errors.
Result<engine::PolicySet> make_policy_set(const std::map<std::string, int64_t>& weights = {});

// The default set.
engine::PolicySet default_policies();

}  // namespace berth::policy
