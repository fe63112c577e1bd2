#include "model/mig.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/printable.h"
#include "model/devices.h"

namespace berth::model {
namespace {

constexpr std::string_view kResourcePrefix = "nvidia.com/mig-";

// All models so far have seven compute slices and eight memory slices, and differ in what these are called.
struct Sizes {
  std::string_view model;
  std::array<int, 4> gigabytes;  // of one, two, four and all memory slices, as the names of the profiles have them
};

constexpr Sizes kSizes[] = {
    {"A100-40GB", {5, 10, 20, 40}},     {"A100-80GB", {10, 20, 40, 80}},   {"H100-80GB", {10, 20, 40, 80}},
    {"H100-94GB", {12, 24, 47, 94}},    {"H100-96GB", {12, 24, 48, 96}},   {"H200-141GB", {18, 35, 71, 141}},
    {"GH200-144GB", {18, 36, 72, 144}}, {"B200-180GB", {23, 45, 90, 180}},
};

struct Product {
  std::string_view name;  // of NVML, with '-' for ' ', and without "NVIDIA-"
  std::string_view model;
};

constexpr Product kProducts[] = {
    {"A100-SXM4-40GB", "A100-40GB"}, {"A100-PCIE-40GB", "A100-40GB"}, {"A100-SXM4-80GB", "A100-80GB"},
    {"A100-SXM-80GB", "A100-80GB"},  {"A100-80GB-PCIe", "A100-80GB"}, {"A800-SXM4-80GB", "A100-80GB"},
    {"A800-80GB-PCIe", "A100-80GB"}, {"H100-80GB-HBM3", "H100-80GB"}, {"H100-PCIe", "H100-80GB"},
    {"H100-NVL", "H100-94GB"},       {"GH200-480GB", "H100-96GB"},    {"H20", "H100-96GB"},
    {"H200", "H200-141GB"},          {"H200-NVL", "H200-141GB"},      {"GH200-144G-HBM3e", "GH200-144GB"},
    {"B200", "B200-180GB"},
};

MigModel seven_of_eight(const Sizes& sizes) {
  const auto [one, two, four, all] = sizes.gigabytes;
  const auto profile = [](int compute, int gigabytes, int memory, MigSlices starts, int instances) {
    return MigProfile{fmt::format("{}g.{}gb", compute, gigabytes), compute, memory, starts, instances, false};
  };
  MigModel model{std::string(sizes.model), 8, 7, {}};
  model.profiles = {profile(1, one, 1, 0b0111'1111, 7),  // a 1g at 7 would be the eighth compute slice
                    profile(1, one, 1, 0b0111'1111, 1),  profile(1, two, 2, 0b0101'0101, 4),
                    profile(2, two, 2, 0b0001'0101, 3),  profile(3, four, 4, 0b0001'0001, 2),
                    profile(4, four, 4, 0b0000'0001, 1), profile(7, all, 8, 0b0000'0001, 1)};
  model.profiles[1].name += "+me";
  model.profiles[1].media_extensions = true;
  return model;
}

bool same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

// "1g.5gb.me" for "1g.5gb+me".
std::string label_name(std::string_view profile) {
  std::string name(profile);
  std::replace(name.begin(), name.end(), '+', '.');
  return name;
}
std::string label_name(const MigProfile& profile) { return label_name(profile.name); }

// What is wrong with one more instance there, for a person; the layout does not have room for it.
std::string objection(const MigLayout& layout, MigInstance instance) {
  const MigProfile& profile = layout.profile(instance);
  for (const MigInstance& other : layout.instances())
    if (layout.profile(other).slices_from(other.start) & profile.slices_from(instance.start))
      return fmt::format("it overlaps {} at {}", layout.profile(other).name, other.start);
  return fmt::format("a device has at most {} of this profile", profile.instances_max);
}

std::vector<int> numbers(MigSlices starts) {
  std::vector<int> out;
  for (int s = 0; s < kMigMemorySlicesMax; ++s)
    if ((starts >> s) & 1) out.push_back(s);
  return out;
}

std::string names_of_profiles(const MigModel& model, std::string_view prefix) {
  std::vector<std::string> names;
  for (const MigProfile& profile : model.profiles) names.push_back(std::string(prefix) + label_name(profile));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::optional<MigProfileIndex> MigModel::find(std::string_view wanted) const {
  for (size_t p = 0; p < profiles.size(); ++p)
    if (profiles[p].name == wanted || label_name(profiles[p]) == wanted) return static_cast<MigProfileIndex>(p);
  return std::nullopt;
}

const std::vector<MigModel>& mig_models() {
  static const std::vector<MigModel> models = [] {
    std::vector<MigModel> all;
    for (const Sizes& sizes : kSizes) all.push_back(seven_of_eight(sizes));
    return all;
  }();
  return models;
}

GpuProduct read_gpu_product(std::string_view label_value) {
  constexpr std::string_view kVendor = "NVIDIA-";
  constexpr std::string_view kShared = "-SHARED";
  constexpr std::string_view kMig = "-MIG-";
  std::string_view name = label_value;
  if (name.ends_with(kShared)) name.remove_suffix(kShared.size());
  std::string_view profile;
  if (const size_t mig = name.find(kMig); mig != std::string_view::npos) {
    profile = name.substr(mig + kMig.size());
    name = name.substr(0, mig);
  }
  if (same_but_for_case(name.substr(0, kVendor.size()), kVendor)) name.remove_prefix(kVendor.size());
  GpuProduct out;
  out.instances = !profile.empty();
  for (const Product& product : kProducts) {
    if (!same_but_for_case(name, product.name)) continue;
    const auto& models = mig_models();
    const auto model =
        std::find_if(models.begin(), models.end(), [&](const MigModel& m) { return m.name == product.model; });
    check(model != models.end(), "a product of a model that is not in the table");
    out.model = &*model;
    out.single = model->find(profile);
  }
  return out;
}

std::string mig_resource_name(const MigProfile& profile) { return mig_resource_name(profile.name); }
std::string mig_resource_name(std::string_view profile) { return std::string(kResourcePrefix) + label_name(profile); }

bool is_mig_resource(std::string_view resource_name) { return resource_name.starts_with(kResourcePrefix); }

Result<MigProfileIndex> parse_mig_resource(const MigModel& model, std::string_view resource_name) {
  if (!is_mig_resource(resource_name)) {
    return fail(ErrorCode::kInvalidInput, fmt::format("'{}' is no MIG resource: these are called {}<profile>",
                                                      printable(resource_name), kResourcePrefix));
  }
  const std::string_view wanted = resource_name.substr(kResourcePrefix.size());
  // NVIDIA's '+' cannot stand in a resource's name, so only the form with '.' is one.
  if (const auto found = model.find(wanted); found && wanted.find('+') == std::string_view::npos) return *found;
  return fail(ErrorCode::kNotFound, fmt::format("{} has no MIG profile for '{}': ask for one of {}", model.name,
                                                printable(resource_name), names_of_profiles(model, kResourcePrefix)));
}

MigLayout::MigLayout(const MigModel& model) : model_(&model) { at_.fill(kNone); }

Result<MigLayout> MigLayout::from_report(const MigModel& model, std::span<const ReportedMigInstance> reported) {
  MigLayout layout(model);
  for (const ReportedMigInstance& one : reported) {
    const auto wrong = [&](std::string_view why) {
      return fail(
          ErrorCode::kInvalidInput,
          fmt::format("no {} has a MIG instance '{}' at memory slice {}: {}; read the layout from the device anew",
                      model.name, printable(one.profile), one.start, why));
    };
    const auto profile = model.find(one.profile);
    if (!profile) return wrong("its profiles are " + names_of_profiles(model, ""));
    const MigSlices starts = model.profiles[*profile].starts;
    if (one.start < 0 || one.start >= kMigMemorySlicesMax || ((starts >> one.start) & 1) == 0)
      return wrong(fmt::format("the profile starts at {}", fmt::join(numbers(starts), ", ")));
    const MigInstance instance{*profile, static_cast<uint8_t>(one.start)};
    if (!layout.fits(instance)) return wrong(objection(layout, instance));
    layout.place(instance);
  }
  return layout;
}

Result<MigLayout> MigLayout::from_report(const MigModel& model, const GpuDevice& device) {
  std::vector<ReportedMigInstance> reported;
  for (const MigDeviceInstance& instance : device.mig_instances) reported.push_back({instance.profile, instance.start});
  return from_report(model, reported);
}

std::vector<MigInstance> MigLayout::instances() const {
  std::vector<MigInstance> out;
  for (uint8_t s = 0; s < kMigMemorySlicesMax; ++s)
    if (at_[s] != kNone) out.push_back({static_cast<MigProfileIndex>(at_[s]), s});
  return out;
}

bool MigLayout::contains(MigInstance instance) const {
  return instance.start < kMigMemorySlicesMax && at_[instance.start] == static_cast<int8_t>(instance.profile);
}

int MigLayout::count(MigProfileIndex profile) const {
  return static_cast<int>(std::count(at_.begin(), at_.end(), static_cast<int8_t>(profile)));
}

int MigLayout::allocated_memory_slices() const { return std::popcount(occupied_); }

int MigLayout::allocated_compute_slices() const {
  int sum = 0;
  for (const int8_t p : at_) sum += p == kNone ? 0 : model_->profiles[static_cast<size_t>(p)].compute_slices;
  return sum;
}

MigSlices MigLayout::starts_for(MigProfileIndex profile) const {
  const MigProfile& wanted = model_->profiles[profile];
  if (count(profile) >= wanted.instances_max) return 0;
  MigSlices free = 0;
  for (int s = 0; s < kMigMemorySlicesMax; ++s)
    if (((wanted.starts >> s) & 1) && !(occupied_ & wanted.slices_from(s))) free |= static_cast<MigSlices>(1U << s);
  return free;
}

int MigLayout::room_for(MigProfileIndex profile) const {
  // The allowed starts of a profile are at least its size apart, so those that are free do not exclude each other.
  const int free = std::popcount(starts_for(profile));
  return std::min(free, model_->profiles[profile].instances_max - count(profile));
}

void MigLayout::place(MigInstance instance) {
  check(instance.start < kMigMemorySlicesMax && fits(instance), "a MIG instance is placed where it does not fit");
  at_[instance.start] = static_cast<int8_t>(instance.profile);
  occupied_ |= profile(instance).slices_from(instance.start);
  media_taken_ = media_taken_ || profile(instance).media_extensions;
}

void MigLayout::remove(MigInstance instance) {
  check(contains(instance), "a MIG instance is removed that is not there");
  at_[instance.start] = kNone;
  occupied_ &= static_cast<MigSlices>(~profile(instance).slices_from(instance.start));
  if (profile(instance).media_extensions) media_taken_ = false;  // it was the only one
}

}  // namespace berth::model
