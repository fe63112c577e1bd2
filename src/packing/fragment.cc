#include "packing/fragment.h"

#include <algorithm>
#include <numeric>

namespace berth::packing {
namespace {

template <typename T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// The first model of each kind; `kind_of`, by model, says which kind it is.
std::vector<size_t> find_kinds(const TypicalMix& mix, std::array<uint32_t, kModelsMax>& kind_of) {
  std::vector<ModelSet> sets;
  for (const auto& [request, count] : mix.requests)
    if (request.devices > 0) sets.push_back(request.models);
  sort_unique(sets);
  std::vector<size_t> out;
  const auto alike = [&](size_t a, size_t b) {
    return std::ranges::all_of(sets, [&](ModelSet set) { return (set >> a & 1) == (set >> b & 1); });
  };
  for (size_t model = 0; model < kModelsMax; ++model) {
    const auto first = std::ranges::find_if(out, [&](size_t other) { return alike(model, other); });
    kind_of[model] = static_cast<uint32_t>(first - out.begin());
    if (first == out.end()) out.push_back(model);
  }
  return out;
}

}  // namespace

FragmentMeasure::FragmentMeasure(const TypicalMix& mix) : count_(mix.count) {
  for (const auto& [request, count] : mix.requests) {
    if (request.devices == 0) continue;
    if (request.devices == 1) sizes_.push_back(request.milli_each);
    else shapes_.push_back({request.milli_each, request.devices});
    cpu_demands_.push_back(request.cpu_milli);
  }
  sort_unique(sizes_);
  sort_unique(shapes_);
  sort_unique(cpu_demands_);
  const std::vector<size_t> kinds = find_kinds(mix, kinds_);
  const size_t rows = kinds.size() * cpu_demands_.size();
  of_one_.assign(rows * (sizes_.size() + 1), 0);
  of_several_.assign(rows * shapes_.size(), 0);
  for (const auto& [request, count] : mix.requests) {
    if (request.devices == 0) continue;
    const bool one = request.devices == 1;
    const Shape shape = {request.milli_each, request.devices};
    std::vector<int64_t>& runnable = one ? of_one_ : of_several_;
    const size_t width = one ? sizes_.size() + 1 : shapes_.size();
    const size_t at = one ? std::lower_bound(sizes_.begin(), sizes_.end(), shape.milli_each) - sizes_.begin() + 1
                          : std::lower_bound(shapes_.begin(), shapes_.end(), shape) - shapes_.begin();
    const size_t enough =
        std::lower_bound(cpu_demands_.begin(), cpu_demands_.end(), request.cpu_milli) - cpu_demands_.begin();
    for (size_t kind = 0; kind < kinds.size(); ++kind)
      for (size_t c = enough; (request.models >> kinds[kind] & 1) != 0 && c < cpu_demands_.size(); ++c)
        runnable[(kind * cpu_demands_.size() + c) * width + at] += count;
  }
  for (size_t row = 0; row < rows; ++row) {
    const auto first = of_one_.begin() + static_cast<std::ptrdiff_t>(row * (sizes_.size() + 1));
    std::partial_sum(first, first + static_cast<std::ptrdiff_t>(sizes_.size() + 1), first);
  }
}

// Each device by itself: it is of use to the requests that it has room for.
int64_t FragmentMeasure::used_by_one(const int64_t* runnable, const Devices& devices) const {
  int64_t used = 0, each = 0;
  int32_t measured = -1;
  for (int d = 0; d < devices.count; ++d) {
    const int32_t free = devices.free_milli[d];
    if (free != measured) each = free * runnable[std::upper_bound(sizes_.begin(), sizes_.end(), free) - sizes_.begin()];
    measured = free;
    used += each;
  }
  return used;
}

int64_t FragmentMeasure::used_by_several(const int64_t* runnable, const Devices& devices) const {
  int64_t used = 0;
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
  return used;
}

int64_t FragmentMeasure::of(int64_t cpu_milli, const Devices& devices, ModelIndex model) const {
  const int64_t free = devices.free();
  if (free == 0) return 0;
  const size_t demands = std::upper_bound(cpu_demands_.begin(), cpu_demands_.end(), cpu_milli) - cpu_demands_.begin();
  if (demands == 0) return count_ * free;
  const size_t row = kinds_[model] * cpu_demands_.size() + demands - 1;
  return count_ * free - used_by_one(&of_one_[row * (sizes_.size() + 1)], devices) -
         used_by_several(of_several_.data() + row * shapes_.size(), devices);
}

}  // namespace berth::packing
