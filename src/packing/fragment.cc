#include "packing/fragment.h"

#include <algorithm>

namespace berth::packing {
namespace {

template <typename T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

FragmentMeasure::FragmentMeasure(const TypicalMix& mix) : count_(mix.count) {
  for (const auto& [request, count] : mix.requests) {
    if (request.devices == 0) continue;
    shapes_.push_back({request.milli_each, request.devices});
    cpu_demands_.push_back(request.cpu_milli);
  }
  sort_unique(shapes_);
  sort_unique(cpu_demands_);
  runnable_.assign(kModelsMax * cpu_demands_.size() * shapes_.size(), 0);
  for (const auto& [request, count] : mix.requests) {
    if (request.devices == 0) continue;
    const Shape shape = {request.milli_each, request.devices};
    const size_t s = std::lower_bound(shapes_.begin(), shapes_.end(), shape) - shapes_.begin();
    for (size_t model = 0; model < kModelsMax; ++model)
      for (size_t c = 0; c < cpu_demands_.size(); ++c)
        if ((request.models >> model & 1) != 0 && cpu_demands_[c] >= request.cpu_milli)
          runnable_[(model * cpu_demands_.size() + c) * shapes_.size() + s] += count;
  }
}

int64_t FragmentMeasure::of(int64_t cpu_milli, const Devices& devices, ModelIndex model) const {
  const int64_t free = devices.free();
  if (free == 0) return 0;
  const size_t demands = std::upper_bound(cpu_demands_.begin(), cpu_demands_.end(), cpu_milli) - cpu_demands_.begin();
  if (demands == 0) return count_ * free;
  const int64_t* const runnable = &runnable_[(model * cpu_demands_.size() + demands - 1) * shapes_.size()];
  int64_t used = 0;  // by the requests that can run
  int32_t measured = -1;
  int32_t with_room = 0;
  int32_t room = 0;
  for (size_t s = 0; s < shapes_.size(); ++s) {
    if (runnable[s] == 0) continue;
    if (shapes_[s].milli_each != measured) {
      measured = shapes_[s].milli_each;
      with_room = room = 0;
      for (int d = 0; d < devices.count; ++d) {
        const bool roomy = devices.free_milli[d] >= measured;
        with_room += roomy ? 1 : 0;
        room += roomy ? devices.free_milli[d] : 0;
      }
      if (with_room == 0) break;  // nor for what is larger
    }
    if (with_room >= shapes_[s].devices) used += runnable[s] * room;
  }
  return count_ * free - used;
}

}  // namespace berth::packing
