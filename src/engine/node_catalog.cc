#include "engine/node_catalog.h"

#include <algorithm>

namespace berth::engine {

uint32_t NodeCatalog::pool_of(const model::Labels& labels) const {
  const auto has = [&](const model::Labels::Entry& wanted) {
    const std::string* value = labels.find(wanted.first);
    return value != nullptr && *value == wanted.second;
  };
  for (size_t i = 0; i < pools.size(); ++i)
    if (std::all_of(pools[i].node_selector.begin(), pools[i].node_selector.end(), has))
      return static_cast<uint32_t>(i + 1);
  return 0;
}

int64_t NodeCatalog::gpu_price_ppm(const model::Labels& labels) const {
  int64_t dearest = 0;
  for (const auto& [model, price] : gpu_prices) dearest = std::max(dearest, price);
  if (dearest <= 0) return 0;
  return model::gpu_price(gpu_prices, labels) * kDearest / dearest;
}

}  // namespace berth::engine
