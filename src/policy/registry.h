// The registry of policies: every PolicyInfo that a file in this folder exports, found by the build, sorted by name;
// and how a set for an engine is made of them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/policy_set.h"

namespace berth::policy {

// By policy name; policies that are not named keep what holds otherwise.
using Weights = std::map<std::string, int64_t>;

// Weights of its own for the nodes of a pool.
struct PoolOptions {
  std::string name;
  model::Labels node_selector;
  Weights weights;  // policies not named keep the cluster's
};

// Weights of its own for the pods of a queue.
struct QueueOptions {
  std::string name;  // of a LocalQueue: "namespace/name", or "name" for those of all namespaces not named so
  Weights weights;   // policies not named keep those of the node's pool, or the cluster's
};

// What berth.yaml says of policies.
struct PolicyOptions {
  Weights weights = {};                            // of the cluster; policies not named keep their default
  std::map<std::string, int64_t> gpu_prices = {};  // micro-dollars for a GPU-hour, by nvidia.com/gpu.product
  std::vector<PoolOptions> pools = {};             // a node belongs to the first that selects it
  std::vector<QueueOptions> queues = {};           // of which no two have the same name
};

inline constexpr int64_t kMaxGpuPrice = 100'000'000'000;  // micro-dollars

// All policies, by name. Generated from the folder: see cmake/policies.cmake.
const std::vector<const engine::PolicyInfo*>& all_policies();

// An error for an unknown name, that of a filter, and a weight outside 0 … 10,000.
Status check_weight(const std::string& name, int64_t weight);
// An error for a weight above 0 of a policy that needs prices, where there are none.
Status check_prices(const std::string& name, int64_t weight, const PolicyOptions& options);

// The set that an engine runs: every filter, and every score with its weight. An error is what check_weight()
// and check_prices() find. `options.gpu_prices` are at most kMaxGpuPrice.
Result<engine::PolicySet> make_policy_set(const PolicyOptions& options = {});

// The default set.
engine::PolicySet default_policies();

}  // namespace berth::policy
