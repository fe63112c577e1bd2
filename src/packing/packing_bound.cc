#include "packing/packing_bound.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "packing/linear_program.h"

namespace berth::packing {
namespace {

constexpr double kGainLeast = 1e-6;  // in milli-devices
constexpr size_t kPivotsPerRow = 60;

struct Kind {  // nodes that are alike
  ModelIndex model = 0;
  int devices_each = 0;
  double cpu_milli = 0;  // of all of them
  double memory_mib = 0;
  double devices = 0;
};

constexpr double kBytesPerMib = 1 << 20;

std::vector<Kind> kinds_of(std::span<const Node> nodes) {
  std::map<std::tuple<ModelIndex, int, int64_t, int64_t>, double> counts;
  for (const Node& node : nodes) ++counts[{node.model(), node.devices().count, node.cpu_milli(), node.memory_bytes()}];
  std::vector<Kind> kinds;
  for (const auto& [key, count] : counts) {
    const auto& [model, devices, cpu_milli, memory_bytes] = key;
    if (devices > 0)
      kinds.push_back({model, devices, count * static_cast<double>(cpu_milli),
                       count * static_cast<double>(memory_bytes) / kBytesPerMib, count * devices});
  }
  return kinds;
}

// The sizes of shares, ascending.
std::vector<int32_t> sizes_of(std::span<const CountedRequest> requests) {
  std::vector<int32_t> sizes;
  for (const CountedRequest& r : requests)
    if (r.request.is_share()) sizes.push_back(r.request.milli_each);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

struct Pattern {
  double worth = 0;
  std::vector<int> copies;  // by size
};

// The dearest set of shares on one device.
Pattern dearest_pattern(const std::vector<int32_t>& sizes, const std::vector<double>& worths) {
  std::array<double, kMilliPerDevice + 1> worth{};
  std::array<int, kMilliPerDevice + 1> last{};
  last.fill(-1);
  for (int32_t room = 1; room <= kMilliPerDevice; ++room) {
    worth[room] = worth[room - 1];
    for (size_t s = 0; s < sizes.size() && sizes[s] <= room; ++s) {
      const double with = worth[room - sizes[s]] + worths[s];
      if (with <= worth[room]) continue;
      worth[room] = with;
      last[room] = static_cast<int>(s);
    }
  }
  Pattern pattern{.worth = worth.back(), .copies = std::vector<int>(sizes.size(), 0)};
  for (int32_t room = kMilliPerDevice; room > 0;) {
    if (last[room] < 0) {
      --room;
      continue;
    }
    ++pattern.copies[last[room]];
    room -= sizes[last[room]];
  }
  return pattern;
}

// Rows of the batch program: CPU, memory and devices of each kind of node; of each kind and size of share, how many are
// there less how many the patterns hold; and how many requests of each sort come.
class BatchProgram {
 public:
  BatchProgram(std::span<const Node> nodes, std::span<const CountedRequest> requests)
      : kinds_(kinds_of(nodes)), sizes_(sizes_of(requests)) {
    for (const Kind& kind : kinds_) limits_.insert(limits_.end(), {kind.cpu_milli, kind.memory_mib, kind.devices});
    limits_.resize(limits_.size() + kinds_.size() * sizes_.size(), 0.0);
    for (const CountedRequest& r : requests) {
      if (r.request.devices == 0) continue;
      for (size_t k = 0; k < kinds_.size(); ++k) add_columns(r.request, k);
      limits_.push_back(r.count);
    }
  }

  std::optional<double> solve() const {
    const auto best = [this](std::span<const double> prices) { return best_column(prices); };
    const auto optimum = maximise(limits_, best, kPivotsPerRow * limits_.size());
    return optimum ? std::optional(optimum->value) : std::nullopt;
  }

 private:
  uint32_t size_row(size_t kind, size_t size) const {
    return static_cast<uint32_t>(3 * kinds_.size() + kind * sizes_.size() + size);
  }

  // The request on this kind of node, its count the next row.
  void add_columns(const Request& request, size_t k) {
    const Kind& kind = kinds_[k];
    if ((request.models >> kind.model & 1) == 0 || request.devices > kind.devices_each) return;
    LinearColumn column{.value = static_cast<double>(request.device_milli()), .entries = {}};
    const auto row = static_cast<uint32_t>(3 * k);
    column.entries = {{row, static_cast<double>(request.cpu_milli)},
                      {row + 1, static_cast<double>(request.memory_bytes) / kBytesPerMib},
                      {static_cast<uint32_t>(limits_.size()), 1.0}};
    if (request.is_share()) {
      const size_t size = std::lower_bound(sizes_.begin(), sizes_.end(), request.milli_each) - sizes_.begin();
      column.entries.emplace_back(size_row(k, size), 1.0);
    } else {
      column.entries.emplace_back(row + 2, static_cast<double>(request.devices));
    }
    columns_.push_back(std::move(column));
  }

  std::optional<LinearColumn> best_column(std::span<const double> prices) const {
    const LinearColumn* best = nullptr;
    double highest = kGainLeast;
    for (const LinearColumn& column : columns_)
      if (const double gain = gain_of(column, prices); gain > highest) highest = gain, best = &column;
    if (best != nullptr) return *best;
    std::optional<LinearColumn> pattern;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      std::vector<double> worths;
      for (size_t s = 0; s < sizes_.size(); ++s) worths.push_back(prices[size_row(k, s)]);
      const Pattern found = dearest_pattern(sizes_, worths);
      const double gain = found.worth - prices[3 * k + 2];
      if (gain <= highest) continue;
      highest = gain;
      pattern = LinearColumn{.value = 0, .entries = {{static_cast<uint32_t>(3 * k + 2), 1.0}}};
      for (size_t s = 0; s < sizes_.size(); ++s)
        if (found.copies[s] > 0) pattern->entries.emplace_back(size_row(k, s), -found.copies[s]);
    }
    return pattern;
  }

  std::vector<Kind> kinds_;
  std::vector<int32_t> sizes_;
  std::vector<double> limits_;
  std::vector<LinearColumn> columns_;  // but for the patterns
};

}  // namespace

std::optional<double> batch_bound_milli(std::span<const Node> nodes, std::span<const CountedRequest> requests) {
  return BatchProgram(nodes, requests).solve();
}

std::optional<double> online_bound_milli(double devices, std::span<const CountedRequest> requests) {
  const std::vector<int32_t> sizes = sizes_of(requests);
  std::vector<double> counts(sizes.size(), 0);
  double whole = 0;  // devices
  for (const CountedRequest& r : requests) {
    if (!r.request.is_share()) whole += r.count * r.request.devices;
    else counts[std::lower_bound(sizes.begin(), sizes.end(), r.request.milli_each) - sizes.begin()] += r.count;
  }
  // Rows: the devices; the part of the time in which idle devices are left (at most 1); of each size, how many are
  // placed (at most all; of large ones that part of them), and how many come in that part less how many are placed.
  const auto most = [](size_t s) { return static_cast<uint32_t>(2 + 2 * s); };
  std::vector<double> limits = {devices, 1};
  LinearColumn part{.value = whole * kMilliPerDevice, .entries = {{0, whole}, {1, 1.0}}};
  for (size_t s = 0; s < sizes.size(); ++s) {
    const bool large = sizes[s] > kLargeShareMilli;
    limits.insert(limits.end(), {large ? 0 : counts[s], 0.0});
    if (large) part.entries.emplace_back(most(s), -counts[s]);
    part.entries.emplace_back(most(s) + 1, counts[s]);
  }
  const auto best = [&](std::span<const double> prices) -> std::optional<LinearColumn> {
    std::vector<double> worths;
    for (size_t s = 0; s < sizes.size(); ++s) worths.push_back(sizes[s] - prices[most(s)] + prices[most(s) + 1]);
    const Pattern found = dearest_pattern(sizes, worths);
    const double gain = found.worth - prices[0];
    if (gain_of(part, prices) > std::max(gain, kGainLeast)) return part;
    if (gain <= kGainLeast) return std::nullopt;
    LinearColumn pattern{.value = 0, .entries = {{0, 1.0}}};
    for (size_t s = 0; s < sizes.size(); ++s) {
      if (found.copies[s] == 0) continue;
      pattern.value += found.copies[s] * sizes[s];
      pattern.entries.emplace_back(most(s), found.copies[s]);
      pattern.entries.emplace_back(most(s) + 1, -found.copies[s]);
    }
    return pattern;
  };
  const auto optimum = maximise(limits, best, kPivotsPerRow * limits.size());
  return optimum ? std::optional(optimum->value) : std::nullopt;
}

}  // namespace berth::packing
