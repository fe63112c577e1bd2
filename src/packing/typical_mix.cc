#include "packing/typical_mix.h"

#include <algorithm>
#include <map>

namespace berth::packing {
namespace {

using Key = std::tuple<int64_t, int32_t, int32_t, ModelSet>;

}  // namespace

TypicalMix typical_mix(const std::vector<Request>& requests, int64_t percent) {
  std::map<Key, int64_t, std::greater<>> counts;
  for (const Request& r : requests)
    ++counts[{r.cpu_milli, r.milli_each, r.devices, r.devices == 0 ? kAnyModel : r.models}];
  std::vector<std::pair<Key, int64_t>> ranked(counts.begin(), counts.end());
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  TypicalMix mix;
  for (const auto& [key, count] : ranked) {
    const bool enough = mix.count * 100 >= percent * static_cast<int64_t>(requests.size());
    if (enough || mix.requests.size() == kTypicalRequestsMax) break;
    const auto& [cpu_milli, milli_each, devices, models] = key;
    mix.requests.push_back({{cpu_milli, 0, devices, milli_each, models}, count});
    mix.count += count;
  }
  return mix;
}

}  // namespace berth::packing
