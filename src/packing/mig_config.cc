#include "packing/mig_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace berth::packing {

using model::MigLayout;

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
