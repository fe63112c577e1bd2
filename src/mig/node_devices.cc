#include "mig/node_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace berth::mig {
namespace {

using model::MigLayout;
using model::MigModel;

constexpr std::string_view kGpu = "nvidia.com/gpu";
// A node has few devices: a beam of this width has found whatever fits in all trials (docs/mig.md).
constexpr int64_t kWorkMax = 20'000;

// Slices by NVIDIA's name, of the amounts that are instances of the model. None: one of the profiles is not the
// model's.
std::optional<packing::MigWaiting> slices_in(const model::ResourceList& amounts, const MigModel& model) {
  packing::MigWaiting out;
  for (const auto& [name, amount] : amounts) {
    if (amount <= 0 || !model::is_mig_resource(name)) continue;
    const auto profile = model::parse_mig_resource(model, name);
    if (!profile) return std::nullopt;
    const model::MigProfile& found = model.profiles[*profile];
    out[found.name] += static_cast<int>(std::min<int64_t>(amount, 1'000));
  }
  return out;
}

int64_t memory_slices(const packing::MigWaiting& slices, const MigModel& model) {
  int64_t sum = 0;
  for (const auto& [name, count] : slices) sum += int64_t{count} * model.profiles[*model.find(name)].memory_slices;
  return sum;
}

// The layouts after cutting the devices for the slices; none where not all of them find room.
std::optional<std::vector<MigLayout>> layouts_for(std::span<const packing::MigDevice> devices,
                                                  const packing::MigWaiting& slices, const MigModel& model,
                                                  packing::MigDemand& demand) {
  const auto count = static_cast<int64_t>(devices.size());
  if (memory_slices(slices, model) > count * model.memory_slices) return std::nullopt;
  std::vector<MigLayout> as_they_are;
  for (const packing::MigDevice& device : devices) as_they_are.push_back(device.layout);
  if (slices.empty()) return as_they_are;
  packing::GeometryPlan plan = packing::plan_geometry(devices, slices, demand, kWorkMax);
  return plan.served == slices ? std::optional(std::move(plan.layouts)) : std::nullopt;
}

}  // namespace

bool is_cut_resource(std::string_view name) { return name == kGpu || model::is_mig_resource(name); }

Result<std::vector<GpuDevice>> devices_of(const model::Node& node) {
  const MigModel& model = *node.mig.model;
  const auto refused = [&](const std::string& why) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("the GPUs of node {} are left as they are cut: {}", node.name, why));
  };
  for (const model::ResourceList* list : {&node.capacity, &node.allocatable})
    for (const auto& [name, amount] : *list)
      if (is_cut_resource(name) && node.allocatable.get(name) != node.capacity.get(name))
        return refused(fmt::format("of {} {} not all are allocatable", node.capacity.get(name), name));
  const int64_t whole = node.allocatable.get(kGpu), cut = node.mig.devices - whole;
  const auto slices = slices_in(node.allocatable, model);
  if (!slices) return refused(fmt::format("{} has not all profiles that are advertised", model.name));
  if (cut < 0) return refused(fmt::format("{} GPUs are advertised, and there are {}", whole, node.mig.devices));
  const packing::MigDevice empty{MigLayout(model), MigLayout(model)};
  std::vector<GpuDevice> out(static_cast<size_t>(node.mig.devices), GpuDevice{empty});
  packing::MigDemand unknown;
  packing::MigWaiting each;
  const bool even =
      cut > 0 && std::all_of(slices->begin(), slices->end(), [&](const auto& s) { return s.second % cut == 0; });
  if (even)
    for (const auto& [name, count] : *slices) each[name] = count / static_cast<int>(cut);
  const std::vector<packing::MigDevice> one(1, empty), all(static_cast<size_t>(cut), empty);
  if (const auto layout = even ? layouts_for(one, each, model, unknown) : std::nullopt) {
    for (size_t d = 0; d < all.size(); ++d) out[d].mig.layout = layout->front();
  } else if (const auto layouts = layouts_for(all, *slices, model, unknown)) {
    for (size_t d = 0; d < all.size(); ++d) out[d].mig.layout = (*layouts)[d];
  } else {
    return refused(fmt::format("{} GPUs cannot have the instances that are advertised", cut));
  }
  for (size_t d = all.size(); d < out.size(); ++d) out[d].whole = true;
  return out;
}

model::ResourceList advertised(std::span<const GpuDevice> devices) {
  model::ResourceList out;
  for (const GpuDevice& device : devices) {
    if (device.whole) out.add(kGpu, 1);
    for (const model::MigInstance instance : device.mig.layout.instances())
      out.add(model::mig_resource_name(device.mig.layout.profile(instance)), 1);
  }
  return out;
}

std::optional<std::vector<GpuDevice>> cut_for(std::span<const GpuDevice> devices, const model::ResourceList& needs,
                                              packing::MigDemand& demand) {
  if (devices.empty()) return std::nullopt;
  const MigModel& model = devices.front().mig.layout.model();
  auto slices = slices_in(needs, model);
  if (!slices) return std::nullopt;
  std::vector<size_t> idle;  // cut ones first, those with most instances before all others; then whole ones
  int64_t whole = 0;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].idle()) idle.push_back(d), whole += devices[d].whole;
    else
      for (auto& [name, count] : *slices) {
        const model::MigProfileIndex profile = *model.find(name);
        count = std::max(0, count - devices[d].mig.layout.count(profile) + devices[d].mig.used.count(profile));
      }
  }
  std::erase_if(*slices, [](const auto& slice) { return slice.second == 0; });
  std::stable_sort(idle.begin(), idle.end(), [&](size_t a, size_t b) {
    if (devices[a].whole != devices[b].whole) return devices[b].whole;
    return devices[a].mig.layout.allocated_memory_slices() > devices[b].mig.layout.allocated_memory_slices();
  });
  const int64_t asked = needs.get(kGpu);
  for (int64_t keep = std::max(whole, asked); keep >= asked; --keep) {
    const int64_t cut = static_cast<int64_t>(idle.size()) - keep;
    if (cut < 0) continue;
    std::vector<packing::MigDevice> mig;
    for (int64_t i = 0; i < cut; ++i) mig.push_back(devices[idle[static_cast<size_t>(i)]].mig);
    const auto layouts = layouts_for(mig, *slices, model, demand);
    if (!layouts) continue;
    std::vector<GpuDevice> out(devices.begin(), devices.end());
    for (size_t i = 0; i < idle.size(); ++i) {
      GpuDevice& device = out[idle[i]];
      device.whole = i >= layouts->size();
      device.mig.layout = device.whole ? MigLayout(model) : (*layouts)[i];
    }
    return out;
  }
  return std::nullopt;
}

void fill_up(std::span<const GpuDevice> before, std::vector<GpuDevice>& devices, packing::MigDemand& demand) {
  for (size_t d = 0; d < devices.size(); ++d) {
    MigLayout& layout = devices[d].mig.layout;
    if (devices[d].whole || layout == before[d].mig.layout) continue;
    std::vector<std::pair<int64_t, model::MigProfileIndex>> wanted;
    for (const auto& [name, count] : demand.asked())
      if (const auto profile = layout.model().find(name))
        wanted.emplace_back(count * layout.model().profiles[*profile].memory_slices, *profile);
    std::sort(wanted.rbegin(), wanted.rend());
    for (const auto& [weight, profile] : wanted)
      while (const auto place = demand.room(layout.model()).best_start(layout, profile)) layout.place(*place);
  }
}

}  // namespace berth::mig
