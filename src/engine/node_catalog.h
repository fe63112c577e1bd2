// NodeCatalog: what the configuration says of nodes by their labels: to which pool each belongs, and what its GPUs
// cost.
//
// State asks once for each node object that comes, so that policies find the answers on the node (NodeView) and stay
// functions of class and node alone. Plain values; the catalog of an engine never changes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/budget.h"
#include "model/labels.h"

namespace berth::engine {

using model::kGpuProductLabel;

struct NodePool {
  std::string name;
  model::Labels node_selector;  // labels that a node of the pool has
};

struct NodeCatalog {
  static constexpr int64_t kDearest = 1'000'000;

  std::vector<NodePool> pools = {};  // a node belongs to the first that selects it
  model::GpuPrices gpu_prices = {};

  // The pool of a node with these labels, counted from 1; 0: it is in none.
  uint32_t pool_of(const model::Labels& labels) const;
  // What a GPU of such a node costs (model::gpu_price), in millionths of the dearest price of all, cut. 0 without
  // prices.
  int64_t gpu_price_ppm(const model::Labels& labels) const;
};

}  // namespace berth::engine
