#include "model/device_topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/check.h"
#include "model/device_ties.h"

namespace berth::model {
namespace {

constexpr int kAnswersKnownMax = 8;  // devices
constexpr size_t kRememberedMax = 4096;
constexpr int32_t kPerNvlink = 100, kSameSwitch = 50, kSameRoot = 30, kSameNuma = 20, kOther = 10;

// True if both are told and the same.
bool same(const std::string& a, const std::string& b) { return !a.empty() && a == b; }

DeviceLink way_by_pcie(const GpuDevice& a, const GpuDevice& b) {
  const bool root = same(a.pcie_root, b.pcie_root);
  if (root && same(a.pcie_switch, b.pcie_switch)) return DeviceLink::kPcieSwitch;
  if (root) return DeviceLink::kPcieRoot;
  if (a.numa_node < 0 || b.numa_node < 0) return DeviceLink::kUntold;
  return a.numa_node == b.numa_node ? DeviceLink::kNuma : DeviceLink::kSystem;
}

// The devices with what is told of others: below one PCIe root is one NUMA node.
std::vector<GpuDevice> with_numa_of_roots(std::vector<GpuDevice> devices) {
  for (GpuDevice& device : devices)
    for (const GpuDevice& other : devices)
      if (device.numa_node < 0 && same(device.pcie_root, other.pcie_root)) device.numa_node = other.numa_node;
  return devices;
}

int32_t points(DeviceLink way) {
  switch (way) {
    case DeviceLink::kPcieSwitch: return kSameSwitch;
    case DeviceLink::kPcieRoot: return kSameRoot;
    case DeviceLink::kNuma: return kSameNuma;
    default: return kOther;
  }
}

int32_t closeness_by(DeviceLink way) {
  switch (way) {
    case DeviceLink::kNvlink: return 1000;
    case DeviceLink::kPcieSwitch: return 700;
    case DeviceLink::kPcieRoot: return 500;
    case DeviceLink::kNuma: return 300;
    default: return 0;
  }
}

}  // namespace

std::string_view to_string(DeviceLink link) {
  switch (link) {
    case DeviceLink::kNvlink: return "NVLink";
    case DeviceLink::kPcieSwitch: return "PCIe switch";
    case DeviceLink::kPcieRoot: return "PCIe root port";
    case DeviceLink::kNuma: return "CPU";
    case DeviceLink::kSystem: return "between CPUs";
    case DeviceLink::kUntold: return "connection not told";
  }
  return "";
}

DeviceTopology::DeviceTopology(const NodeDevices& devices) {
  const std::vector<GpuDevice> all = with_numa_of_roots(devices.devices);
  const size_t count = all.size();
  check(count <= kNodeDevicesMax, "a node whose devices are known has few enough of them");
  pairs_.assign(count, std::vector<Pair>(count));
  for (size_t i = 0; i < count; ++i) {
    const GpuDevice& device = all[i];
    for (size_t j = 0; j < count; ++j) {
      const DeviceLink way = way_by_pcie(device, all[j]);
      pairs_[i][j] = {way, points(way)};
    }
    for (const auto& [peer, links] : device.nvlinks)
      pairs_[i][peer] = {DeviceLink::kNvlink, pairs_[i][peer].score + kPerNvlink * links};
  }
  scores_.resize(size_t{1} << count);
  close_pairs_.resize(scores_.size());
  worst_.resize(scores_.size(), DeviceLink::kNvlink);
  for (DeviceSet set = 1; set < scores_.size(); ++set) {
    const int first = std::countr_zero(set);
    const DeviceSet rest = set & (set - 1);
    scores_[set] = scores_[rest];
    close_pairs_[set] = close_pairs_[rest];
    worst_[set] = worst_[rest];
    for (DeviceSet left = rest; left != 0; left &= left - 1) {
      const Pair& pair = pairs_[static_cast<size_t>(first)][static_cast<size_t>(std::countr_zero(left))];
      scores_[set] += pair.score;
      close_pairs_[set] += closeness_by(pair.link);
      worst_[set] = std::max(worst_[set], pair.link);
    }
  }
  if (size() > kAnswersKnownMax) return;
  answers_.resize(count + 1, std::vector<uint8_t>(scores_.size()));
  for (int wanted = 1; wanted <= size(); ++wanted)
    for (DeviceSet free = 0; free < scores_.size(); ++free)
      answers_[static_cast<size_t>(wanted)][free] = static_cast<uint8_t>(search(free, wanted));
}

std::vector<int32_t> ties_to_whole(const NodeDevices& devices) {
  const std::vector<GpuDevice> all = with_numa_of_roots(devices.devices);
  const DeviceSet whole = whole_devices(devices);
  std::vector<int32_t> out(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < all.size(); ++j)
      if (i != j && (whole >> j & 1) != 0) out[i] += points(way_by_pcie(all[i], all[j]));
    for (const auto& [peer, links] : all[i].nvlinks)
      if ((whole >> peer & 1) != 0) out[i] += kPerNvlink * links;
  }
  return out;
}

DeviceSet DeviceTopology::choose(DeviceSet free, int count) const {
  check(free < scores_.size(), "only devices of the node are free");
  if (count <= 0 || count > std::popcount(free)) return 0;
  if (!answers_.empty()) return answers_[static_cast<size_t>(count)][free];
  if (remembered_.size() >= kRememberedMax) remembered_.clear();
  const auto [answer, fresh] = remembered_.try_emplace(uint64_t{free} << 8 | static_cast<uint64_t>(count));
  if (fresh) answer->second = search(free, count);
  return answer->second;
}

// Looks at every subset of `free` of that size.
DeviceSet DeviceTopology::search(DeviceSet free, int count) const {
  if (count > std::popcount(free)) return 0;
  std::vector<DeviceSet> bits;  // of the free devices
  for (DeviceSet left = free; left != 0; left &= left - 1) bits.push_back(left & -left);
  std::vector<size_t> picked(static_cast<size_t>(count));
  for (size_t i = 0; i < picked.size(); ++i) picked[i] = i;
  DeviceSet best = 0;
  while (true) {
    DeviceSet set = 0;
    for (const size_t i : picked) set |= bits[i];
    // The first of equals is the lowest: sets come in the order of their lists.
    if (best == 0 || better(set, best) || (!better(best, set) && score(free & ~set) > score(free & ~best))) best = set;
    size_t last = picked.size();
    while (last > 0 && picked[last - 1] == bits.size() - picked.size() + last - 1) --last;
    if (last == 0) return best;
    ++picked[last - 1];
    for (size_t i = last; i < picked.size(); ++i) picked[i] = picked[i - 1] + 1;
  }
}

int32_t DeviceTopology::closeness(DeviceSet set) const {
  const int count = std::popcount(set);
  if (count < 2) return closeness_by(DeviceLink::kNvlink);
  const int32_t mean = close_pairs_[set] / (count * (count - 1) / 2), worst = closeness_by(worst_[set]);
  return worst + (mean - worst) / 20;
}

DeviceSet whole_devices(const NodeDevices& devices) {
  DeviceSet out = 0;
  for (size_t i = 0; i < devices.devices.size(); ++i)
    if (devices.devices[i].unhealthy.empty() && !devices.devices[i].mig_enabled) out |= DeviceSet{1} << i;
  return out;
}

std::string ill_gpus(const NodeDevices& devices) {
  std::string which;
  size_t count = 0;
  for (const GpuDevice& device : devices.devices) {
    if (device.unhealthy.empty()) continue;
    ++count;
    which += fmt::format("{}{}: {}", which.empty() ? "" : ", ", device.uuid, device.unhealthy);
    std::set<std::string> users(device.pods.begin(), device.pods.end());
    for (const MigDeviceInstance& instance : device.mig_instances)
      users.insert(instance.pods.begin(), instance.pods.end());
    if (!users.empty()) which += fmt::format(", which counts as in use while {} has it", fmt::join(users, ", "));
  }
  if (count == 0) return "";
  return fmt::format("; {} of {} GPUs {} unhealthy ({})", count, devices.devices.size(), count == 1 ? "is" : "are",
                     which);
}

}  // namespace berth::model
