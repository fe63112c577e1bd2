// RequestMix: which requests for GPUs the cluster sees, and how often, measured over the last kWindow that came.
//
// What is left on a node is worth what such requests could make of it (policy/fragmentation_aware.cc). Every pod that
// asks for GPUs counts once, when the engine first hears of it, wherever it is; so an engine that starts anew begins
// with the pods that run. The mix that policies see changes between cycles only, and only once an eighth of the window
// is new, because then every score has to be made again (Candidates). It depends on the calls to the engine alone.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "engine/pod_class.h"

namespace berth::engine {

// What a pod asks for, as far as it decides how much of a node's GPUs pods like it could use.
struct RequestShape {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  int64_t share_micros = 0;  // of one GPU; 0: none, or by memory
  int64_t share_memory_bytes = 0;
  std::vector<std::pair<uint32_t, int64_t>> gpus;  // (ResourceId, amount) of GPU resources, sorted

  friend auto operator<=>(const RequestShape&, const RequestShape&) = default;
};

class RequestMix {
 public:
  RequestMix() = default;
  RequestMix(const RequestMix&) = delete;
  RequestMix& operator=(const RequestMix&) = delete;

  static constexpr size_t kWindow = 1000;   // requests
  static constexpr size_t kShapesMax = 64;  // the most frequent; what a score costs grows with it

  // A pod of the class has come. Classes that ask for no GPU are passed over.
  void observe(const PodClass& cls, const ResourceTable& resources);
  // Between cycles: lets policies see what was observed, if it is enough that is new. True: the mix is another one.
  bool settle();

  // How often each shape came; empty until the first request.
  const std::vector<std::pair<RequestShape, int64_t>>& shapes() const { return shapes_; }
  // Grows with every change of shapes().
  uint64_t version() const { return version_; }

 private:
  using Counts = std::map<RequestShape, int64_t>;

  Counts counts_;
  std::deque<Counts::iterator> window_;  // the oldest first
  size_t unseen_ = 0;                    // observed since shapes_ was made
  std::vector<std::pair<RequestShape, int64_t>> shapes_;
  uint64_t version_ = 0;
};

}  // namespace berth::engine
