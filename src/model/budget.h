// Budgets: what a queue may spend on GPUs in a window of time, as plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/period.h"
#include "model/labels.h"

namespace berth::model {

struct Budget {
  std::optional<int64_t> gpu_time;  // micro-GPU-hours; none: as much as it likes
  std::optional<int64_t> cost;      // micro-dollars
  Period window = Period::kMonth;
  bool drains = false;  // when it is spent those who run leave, too; else nobody more is let in

  bool exists() const { return gpu_time || cost; }
  friend bool operator==(const Budget&, const Budget&) = default;
};

// What has been spent in the window that began at `since`, counted up to `until`; both by the wall clock.
struct Spent {
  Time since, until;
  int64_t gpu_time = 0, cost = 0;  // as Budget's
  friend bool operator==(const Spent&, const Spent&) = default;
};

// Hours and dollars, as people write them: "2.50", with up to six decimals, to millionths and back. None: not a number,
// below 0, or above the largest one.
inline constexpr int64_t kBudgetMax = 1'000'000'000'000'000;  // a thousand million hours or dollars
std::optional<int64_t> parse_micros(const std::string& text, int64_t max = kBudgetMax);
std::string format_micros(int64_t micros);

// Micro-dollars for a GPU-hour, by the label nvidia.com/gpu.product of nodes.
using GpuPrices = std::map<std::string, int64_t>;

inline constexpr std::string_view kGpuProductLabel = "nvidia.com/gpu.product";

// What a GPU of nodes with these labels costs. A model that is not listed counts as the dearest, unless it is a listed
// one with the suffix of NVIDIA's feature discovery: -SHARED where each device is advertised several times,
// -MIG-<profile> where all are cut into the same instances. 0 without prices.
int64_t gpu_price(const GpuPrices& prices, const Labels& labels);

// What one of this resource is of a GPU, in sevenths: 7 for nvidia.com/gpu and other whole devices and their replicas,
// 3 for nvidia.com/mig-3g.40gb, 0 for what is no GPU.
int64_t gpu_sevenths(std::string_view resource);

}  // namespace berth::model
