#include "engine/request_mix.h"

#include <algorithm>

namespace berth::engine {
namespace {

constexpr size_t kTurnover = 8;  // the mix is made anew when one in so many requests of the window is new

}  // namespace

void RequestMix::observe(const PodClass& cls, const ResourceTable& resources) {
  if (!cls.requests_gpu) return;
  RequestShape shape{.cpu_millis = cls.request(kCpu),
                     .memory_bytes = cls.request(kMemory),
                     .share_micros = cls.spec->gpu_share.micros,
                     .share_memory_bytes = cls.spec->gpu_share.memory_bytes,
                     .gpus = {}};
  for (const ResourceAmount& request : cls.requests)
    if (resources.is_gpu(request.id)) shape.gpus.emplace_back(request.id.value, request.amount);
  const auto at = counts_.try_emplace(std::move(shape), 0).first;
  ++at->second;
  window_.push_back(at);
  ++unseen_;
  if (window_.size() <= kWindow) return;
  if (--window_.front()->second == 0) counts_.erase(window_.front());
  window_.pop_front();
}

bool RequestMix::settle() {
  if (unseen_ == 0 || unseen_ < window_.size() / kTurnover) return false;
  unseen_ = 0;
  std::vector<std::pair<RequestShape, int64_t>> shapes(counts_.begin(), counts_.end());
  std::stable_sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (shapes.size() > kShapesMax) shapes.resize(kShapesMax);
  if (shapes == shapes_) return false;
  shapes_ = std::move(shapes);
  ++version_;
  return true;
}

}  // namespace berth::engine
