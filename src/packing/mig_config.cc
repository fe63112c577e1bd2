#include "packing/mig_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "packing/mig_fit.h"

namespace berth::packing {

using model::MigLayout;
using model::MigModel;

namespace {

// As many instances of the profile as a device takes.
MigLayout full_of(const MigModel& model, model::MigProfileIndex profile) {
  MigLayout out(model);
  for (uint8_t start = 0; start < model.memory_slices; ++start)
    if (out.fits({profile, start})) out.place({profile, start});
  return out;
}

MigLayout balanced(const MigModel& model) {
  MigLayout out(model);
  for (const auto& [compute, memory, start] : {std::tuple{3, 4, 4}, {2, 2, 2}, {1, 1, 0}, {1, 1, 1}})
    for (model::MigProfileIndex p = 0; p < model.profiles.size(); ++p) {
      const model::MigProfile& profile = model.profiles[p];
      const model::MigInstance instance{p, static_cast<uint8_t>(start)};
      if (profile.compute_slices == compute && profile.memory_slices == memory && !profile.media_extensions &&
          out.fits(instance))
        out.place(instance);
    }
  return out;
}

std::vector<NamedLayout> make_named_layouts(const MigModel& model) {
  std::vector<NamedLayout> out{{"all-disabled", MigLayout(model), true}};
  for (model::MigProfileIndex p = 0; p < model.profiles.size(); ++p) {
    std::string profile = model.profiles[p].name;
    std::ranges::replace(profile, '+', '.');
    out.push_back({"all-" + profile, full_of(model, p)});
  }
  out.push_back({"all-balanced", balanced(model)});
  return out;
}

}  // namespace

const std::vector<NamedLayout>& named_layouts(const MigModel& model) {
  static const std::map<const MigModel*, std::vector<NamedLayout>> all = [] {
    std::map<const MigModel*, std::vector<NamedLayout>> out;
    for (const MigModel& each : model::mig_models()) out.emplace(&each, make_named_layouts(each));
    return out;
  }();
  return all.at(&model);
}

model::ResourceList advertised(const NamedLayout& device) {
  model::ResourceList out;
  if (device.whole) out.set(model::kWholeGpuResource, 1);
  for (const auto& [profile, count] : mig_devices(device.layout)) out.set(model::mig_resource_name(profile), count);
  return out;
}

bool can_be_cut_for(const model::DynamicMig& mig, const model::ResourceList& asked) {
  if (mig.hand == model::MigHand::kNamed)
    return std::ranges::any_of(named_layouts(*mig.model), [&](const NamedLayout& each) {
      const model::ResourceList has = advertised(each);
      return std::ranges::all_of(asked,
                                 [&](const auto& need) { return has.get(need.first) * mig.devices >= need.second; });
    });
  MigWaiting slices;
  int64_t whole = 0;
  for (const auto& [name, amount] : asked) {
    if (name == model::kWholeGpuResource) {
      whole = amount;
      continue;
    }
    const auto profile = model::parse_mig_resource(*mig.model, name);
    if (!profile || amount > mig.devices * mig.model->profiles[*profile].instances_max) return false;
    slices[mig.model->profiles[*profile].name] = static_cast<int>(amount);
  }
  return whole <= mig.devices && may_fit(*mig.model, slices, mig.devices - whole);
}

std::vector<std::pair<std::string, int>> mig_devices(const MigLayout& layout) {
  std::vector<std::pair<std::string, int>> out;
  const auto& profiles = layout.model().profiles;
  for (model::MigProfileIndex p = 0; p < profiles.size(); ++p)
    if (const int count = layout.count(p); count > 0) out.emplace_back(profiles[p].name, count);
  return out;
}

std::string mig_config_name(const MigLayout& layout) {
  if (layout.empty()) return "all-enabled";
  std::vector<std::string> parts;
  for (const auto& [profile, count] : mig_devices(layout)) parts.push_back(fmt::format("{}x{}", count, profile));
  std::string name = fmt::format("{}", fmt::join(parts, "-"));
  std::replace(name.begin(), name.end(), '+', '.');
  return name;
}

std::string mig_config_entry(const std::string& name, std::span<const MigLayout> devices) {
  std::vector<std::pair<std::vector<std::pair<std::string, int>>, std::vector<size_t>>> alike;
  for (size_t d = 0; d < devices.size(); ++d) {
    auto wanted = mig_devices(devices[d]);
    auto same = std::find_if(alike.begin(), alike.end(), [&](const auto& group) { return group.first == wanted; });
    if (same == alike.end()) same = alike.emplace(same, std::move(wanted), std::vector<size_t>{});
    same->second.push_back(d);
  }
  std::string out = fmt::format("{}:\n", name);
  for (const auto& [wanted, indexes] : alike) {
    out += fmt::format("  - devices: [{}]\n    mig-enabled: true\n", fmt::join(indexes, ", "));
    out += wanted.empty() ? "    mig-devices: {}\n" : "    mig-devices:\n";
    for (const auto& [profile, count] : wanted) out += fmt::format("      \"{}\": {}\n", profile, count);
  }
  return out;
}

}  // namespace berth::packing
