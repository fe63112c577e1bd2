#include "mig/node_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>

#include "model/device_ties.h"
#include "packing/mig_config.h"
#include "packing/mig_fit.h"

namespace berth::mig {
namespace {

using model::MigLayout;
using model::MigModel;

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

// The layouts after cutting the devices for the slices; none where not all of them find room. On devices that have no
// instances there is nothing to keep, so that the quick way is as good as the search.
std::optional<std::vector<MigLayout>> layouts_for(std::span<const packing::MigDevice> devices,
                                                  const packing::MigWaiting& slices, const MigModel& model,
                                                  packing::MigDemand& demand) {
  std::vector<MigLayout> as_they_are;
  for (const packing::MigDevice& device : devices) as_they_are.push_back(device.layout);
  if (slices.empty()) return as_they_are;
  const auto count = static_cast<int64_t>(devices.size());
  if (!packing::may_fit(model, slices, count)) return std::nullopt;
  if (std::ranges::all_of(as_they_are, &MigLayout::empty))
    if (auto placed = packing::place_largest_first(model, slices, count, demand)) return placed;
  packing::GeometryPlan plan = packing::plan_geometry(devices, slices, demand, kWorkMax);
  return plan.served == slices ? std::optional(std::move(plan.layouts)) : std::nullopt;
}

// What cut_for() works with: idle devices, those that are cut first, the fullest before all others, then whole ones;
// and what has to be served by them.
struct Task {
  std::vector<size_t> idle;
  int64_t whole = 0;  // of these
  packing::MigWaiting slices;
};

std::optional<Task> task_of(std::span<const GpuDevice> devices, const model::ResourceList& needs) {
  if (devices.empty()) return std::nullopt;
  auto slices = slices_in(needs, devices.front().mig.layout.model());
  if (!slices) return std::nullopt;
  Task out{{}, 0, std::move(*slices)};
  for (size_t d = 0; d < devices.size(); ++d) {
    const packing::MigDevice& mig = devices[d].mig;
    if (devices[d].idle()) out.idle.push_back(d), out.whole += devices[d].whole;
    else
      for (auto& [name, count] : out.slices) {
        const model::MigProfileIndex profile = *mig.layout.model().find(name);
        count = std::max(0, count - mig.layout.count(profile) + mig.used.count(profile));
      }
  }
  std::erase_if(out.slices, [](const auto& slice) { return slice.second == 0; });
  std::stable_sort(out.idle.begin(), out.idle.end(), [&](size_t a, size_t b) {
    if (devices[a].whole != devices[b].whole) return devices[b].whole;
    if (devices[a].whole) return devices[a].ties < devices[b].ties;
    return devices[a].mig.layout.allocated_memory_slices() > devices[b].mig.layout.allocated_memory_slices();
  });
  return out;
}

// A device as an agent tells it. In use is all of it: which of its instances, nobody says.
Result<GpuDevice> told_device(const model::GpuDevice& told, const MigModel& model) {
  GpuDevice out{{MigLayout(model), MigLayout(model)}};
  out.whole = !told.mig_enabled;
  out.ill = !told.unhealthy.empty();
  out.fixed = out.ill || !told.pods.empty();
  BERTH_TRY(layout, MigLayout::from_report(model, told));
  out.mig.layout = layout;
  if (out.fixed) out.mig.used = layout;
  return out;
}

Result<std::vector<GpuDevice>> devices_told(const model::Node& node) {
  std::vector<GpuDevice> out;
  const std::vector<int32_t> ties = model::ties_to_whole(node.devices);
  for (const model::GpuDevice& told : node.cut_by_agent()) {
    BERTH_TRY(device, told_device(told, *node.mig.model));
    if (device.whole) device.ties = ties[out.size()];
    out.push_back(device);
  }
  if (advertised(out) != cut_resources(node.allocatable))
    return fail(ErrorCode::kInvalidInput,
                fmt::format("the GPUs of node {} are left as they are cut: its agent tells other devices than kubelet "
                            "has allocatable, so that one of both is out of date",
                            node.name));
  return out;
}

}  // namespace

bool is_cut_resource(std::string_view name) { return name == model::kWholeGpuResource || model::is_mig_resource(name); }

model::ResourceList cut_resources(const model::ResourceList& amounts) {
  model::ResourceList out;
  for (const auto& [name, amount] : amounts)
    if (amount > 0 && is_cut_resource(name)) out.set(name, amount);
  return out;
}

std::vector<model::MigDeviceInstance> instances_of(const GpuDevice& device) {
  std::vector<model::MigDeviceInstance> out;
  for (const model::MigInstance instance : device.mig.layout.instances())
    out.push_back({"", device.mig.layout.profile(instance).name, instance.start});
  return out;
}

Result<std::vector<GpuDevice>> devices_of(const model::Node& node) {
  if (!node.cut_by_agent().empty()) return devices_told(node);
  const MigModel& model = *node.mig.model;
  const auto refused = [&](const std::string& why) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("the GPUs of node {} are left as they are cut: {}", node.name, why));
  };
  const int64_t whole = node.allocatable.get(model::kWholeGpuResource), cut = node.mig.devices - whole;
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
    if (device.ill) continue;
    if (device.whole) out.add(model::kWholeGpuResource, 1);
    for (const model::MigInstance instance : device.mig.layout.instances())
      out.add(model::mig_resource_name(device.mig.layout.profile(instance)), 1);
  }
  return out;
}

std::string why_it_cannot_arrive(const model::Node& node, std::span<const model::GpuDevice> wanted,
                                 const model::ResourceList& resources) {
  const std::span<const model::GpuDevice> told = node.cut_by_agent();
  if (wanted.empty()) return "";
  if (node.devices.devices.empty()) return "no agent tells its GPUs any more";
  if (told.empty()) return "its GPUs are not to be cut any more";
  std::vector<GpuDevice> in_the_end;
  std::string ill, changed;
  for (const model::GpuDevice& want : wanted) {
    const auto at = std::ranges::find(told, want.uuid, &model::GpuDevice::uuid);
    if (at == told.end()) return fmt::format("GPU {} is no more there", want.uuid);
    const auto has = told_device(*at, *node.mig.model);
    auto device = told_device(want, *node.mig.model);
    if (!has || !device) return "";  // nothing is known of it, for now
    const bool done = has->whole == device->whole && has->mig.layout == device->mig.layout;
    if (!done && !at->pods.empty())
      return fmt::format("GPU {} has come into use, by {}", want.uuid, fmt::join(at->pods, ", "));
    device->ill = has->ill;
    if (has->ill && !done) changed = want.uuid;
    if (has->ill) ill += fmt::format("{}{} ({})", ill.empty() ? "" : ", ", want.uuid, at->unhealthy);
    in_the_end.push_back(*device);
  }
  if (told.size() > wanted.size()) return "the node has other GPUs than before";
  if (advertised(in_the_end) == resources)
    return changed.empty() ? "" : fmt::format("GPU {} is ill, and has other instances than before", changed);
  return fmt::format("other GPUs are healthy than before; ill: {}", ill.empty() ? "none" : ill);
}

bool can_cut_for(std::span<const GpuDevice> devices, const model::ResourceList& needs, packing::MigDemand& demand) {
  const auto task = task_of(devices, needs);
  if (!task) return false;
  const MigModel& model = devices.front().mig.layout.model();
  const int64_t cut = static_cast<int64_t>(task->idle.size()) - needs.get(model::kWholeGpuResource);
  if (cut < 0 || !packing::may_fit(model, task->slices, cut)) return false;
  return packing::place_largest_first(model, task->slices, cut, demand) || cut_for(devices, needs, demand);
}

std::optional<std::vector<GpuDevice>> cut_for(std::span<const GpuDevice> devices, const model::ResourceList& needs,
                                              packing::MigDemand& demand) {
  const auto task = task_of(devices, needs);
  if (!task) return std::nullopt;
  const MigModel& model = devices.front().mig.layout.model();
  const int64_t asked = needs.get(model::kWholeGpuResource);
  for (int64_t keep = std::max(task->whole, asked); keep >= asked; --keep) {
    const int64_t cut = static_cast<int64_t>(task->idle.size()) - keep;
    if (cut < 0) continue;
    std::vector<packing::MigDevice> mig;
    for (int64_t i = 0; i < cut; ++i) mig.push_back(devices[task->idle[static_cast<size_t>(i)]].mig);
    const auto layouts = layouts_for(mig, task->slices, model, demand);
    if (!layouts) continue;
    std::vector<GpuDevice> out(devices.begin(), devices.end());
    for (size_t i = 0; i < task->idle.size(); ++i) {
      GpuDevice& device = out[task->idle[i]];
      device.whole = i >= layouts->size();
      device.mig.layout = device.whole ? MigLayout(model) : (*layouts)[i];
    }
    return out;
  }
  return std::nullopt;
}

std::optional<NamedConfig> named_for(std::span<const GpuDevice> devices, const model::ResourceList& needs) {
  if (devices.empty()) return std::nullopt;
  const MigModel& model = devices.front().mig.layout.model();
  for (const packing::NamedLayout& each : packing::named_layouts(model)) {
    const GpuDevice device{{each.layout, MigLayout(model)}, each.whole};
    NamedConfig config{each.name, std::vector<GpuDevice>(devices.size(), device)};
    const model::ResourceList has = advertised(config.devices);
    if (std::ranges::all_of(needs, [&](const auto& need) { return has.get(need.first) >= need.second; })) return config;
  }
  return std::nullopt;
}

namespace {

// Profiles, the first to be placed first: what is asked for most, then what is largest.
std::vector<model::MigProfileIndex> most_useful(const MigModel& model, const packing::MigDemand& demand) {
  std::vector<std::tuple<int64_t, int, int, model::MigProfileIndex>> order;
  for (model::MigProfileIndex p = 0; p < model.profiles.size(); ++p) {
    const model::MigProfile& profile = model.profiles[p];
    const auto asked = demand.asked().find(profile.name);
    const int64_t count = asked == demand.asked().end() ? 0 : asked->second;
    if (count > 0 || !profile.media_extensions)
      order.emplace_back(count * profile.memory_slices, profile.memory_slices, profile.compute_slices, p);
  }
  std::sort(order.rbegin(), order.rend());
  std::vector<model::MigProfileIndex> out;
  for (const auto& each : order) out.push_back(std::get<model::MigProfileIndex>(each));
  return out;
}

}  // namespace

void fill_up(std::span<const GpuDevice> before, std::vector<GpuDevice>& devices, packing::MigDemand& demand) {
  for (size_t d = 0; d < devices.size(); ++d) {
    MigLayout& layout = devices[d].mig.layout;
    if (devices[d].whole || layout == before[d].mig.layout) continue;
    for (const model::MigProfileIndex profile : most_useful(layout.model(), demand))
      while (const auto place = demand.room(layout.model()).best_start(layout, profile)) layout.place(*place);
  }
}

}  // namespace berth::mig
