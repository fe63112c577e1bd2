#include "packing/model_scarcity.h"

#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "packing/linear_program.h"

namespace berth::packing {
namespace {

constexpr int kLevels = 16;
constexpr double kLevelStep = 1.0 / 8;  // of the fleet's devices
constexpr double kEpsilon = 1e-9;
constexpr size_t kPivotsMax = 1000;

using Demand = std::map<ModelSet, double>;  // in devices, by the models that will do

// Rows: what is asked for by each set of models, then what there is of each model. A column serves one device of a set
// by one of its models.
std::vector<double> prices_at(const Demand& demand, double times, const std::vector<int64_t>& devices) {
  std::vector<double> limits;
  std::vector<ModelSet> sets;
  for (const auto& [models, amount] : demand) {
    sets.push_back(models);
    limits.push_back(amount * times);
  }
  for (const int64_t count : devices) limits.push_back(static_cast<double>(count));
  const auto best = [&](std::span<const double> prices) {
    std::optional<LinearColumn> found;
    double most = kEpsilon;
    for (uint32_t s = 0; s < sets.size(); ++s)
      for (uint32_t m = 0; m < devices.size(); ++m) {
        if ((sets[s] >> m & 1) == 0 || devices[m] == 0) continue;
        LinearColumn column{1, {{s, 1.0}, {static_cast<uint32_t>(sets.size()) + m, 1.0}}};
        if (const double gain = gain_of(column, prices); gain > most) {
          most = gain;
          found = std::move(column);
        }
      }
    return found;
  };
  const auto optimum = maximise(limits, best, kPivotsMax);
  if (!optimum) return std::vector<double>(devices.size(), 0);
  return {optimum->prices.begin() + static_cast<std::ptrdiff_t>(sets.size()), optimum->prices.end()};
}

}  // namespace

std::vector<double> model_scarcity(std::span<const Request> requests, const std::vector<int64_t>& devices) {
  std::vector<double> out(devices.size(), 0);
  Demand demand;
  double total = 0;
  for (const Request& request : requests) {
    if (request.devices == 0) continue;
    const double amount = static_cast<double>(request.device_milli()) / kMilliPerDevice;
    demand[request.models] += amount;
    total += amount;
  }
  const auto have = static_cast<double>(std::accumulate(devices.begin(), devices.end(), int64_t{0}));
  if (total == 0 || have == 0) return out;
  for (int level = 1; level <= kLevels; ++level) {
    const std::vector<double> prices = prices_at(demand, have * kLevelStep * level / total, devices);
    for (size_t m = 0; m < devices.size(); ++m) out[m] += prices[m] / kLevels;
  }
  return out;
}

}  // namespace berth::packing
