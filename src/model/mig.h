// MIG geometry: which instances a GPU can be cut into, and where each may lie.
//
// A device has memory slices, numbered from 0, and an instance takes a run of them from one of the starts that its
// profile allows; the compute slices come with the profile. A MigLayout is what lies on one device. The tables are what
// NVML answers for these models (nvmlDeviceGetGpuInstanceProfileInfo, nvmlDeviceGetGpuInstancePossiblePlacements) and
// the MIG user guide prints, https://docs.nvidia.com/datacenter/tesla/mig-user-guide/; names of sizes also from
// nvidia-mig-parted's default configuration. A family does not tell the geometry's names, so products are matched
// whole. Plain values; any thread.
//
//   const MigModel* a100 = read_gpu_product("NVIDIA-A100-SXM4-40GB").model;
//   MigLayout layout(*a100);
//   layout.place({*a100->find("3g.20gb"), 4});  // leaves 0-3, where alone a 4g.20gb may lie
//
// Invariants of MigLayout: 1. every instance starts where its profile may; 2. no memory slice is in two instances;
// 3. of no profile there are more than its instances_max. That compute slices suffice follows (mig_test.cc shows it).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::model {

struct GpuDevice;  // model/devices.h

inline constexpr int kMigMemorySlicesMax = 8;

// Bit s: memory slice s.
using MigSlices = uint8_t;
// A profile, by its place in MigModel::profiles.
using MigProfileIndex = uint32_t;

struct MigProfile {
  std::string name;  // NVIDIA's: "1g.5gb", "1g.5gb+me"
  int compute_slices = 0;
  int memory_slices = 0;
  MigSlices starts = 0;           // where an instance may begin
  int instances_max = 0;          // on one device
  bool media_extensions = false;  // +me: has the JPEG and OFA engines, of which a device has one set to give

  // The memory slices of an instance that begins at `start`.
  MigSlices slices_from(int start) const { return static_cast<MigSlices>(((1U << memory_slices) - 1) << start); }
};

struct MigModel {
  std::string name;  // "A100-40GB"
  int memory_slices = 0;
  int compute_slices = 0;
  std::vector<MigProfile> profiles;  // by compute slices, then by memory

  // The profile that NVIDIA's tools call `name` ("1g.5gb+me") or a label or resource does ("1g.5gb.me").
  std::optional<MigProfileIndex> find(std::string_view name) const;
};

// All models whose geometry is known, in a fixed order. They live as long as the program.
const std::vector<MigModel>& mig_models();

// What a node's label nvidia.com/gpu.product says.
struct GpuProduct {
  const MigModel* model = nullptr;  // none: not one of mig_models()
  // With the device plugin's strategy `single` ("…-MIG-1g.5gb"): each nvidia.com/gpu of the node is an instance, of
  // which profile, where the model is known.
  bool instances = false;
  std::optional<MigProfileIndex> single;
};

// Reads the label's value as GPU feature discovery writes it: "NVIDIA-A100-SXM4-40GB", with "-SHARED" for time-slicing,
// "-MIG-<profile>" for the strategy `single`. Case and a missing "NVIDIA-" do not matter.
GpuProduct read_gpu_product(std::string_view label_value);

// "nvidia.com/mig-1g.5gb.me": what the device plugin calls instances of the profile with the strategy `mixed`. A
// resource's name has no '+', so '.' stands for it.
std::string mig_resource_name(const MigProfile& profile);
std::string mig_resource_name(std::string_view profile);  // by NVIDIA's name
// True for nvidia.com/mig-*.
bool is_mig_resource(std::string_view resource_name);
// The profile of a resource that is_mig_resource(). kInvalidInput for any other name, kNotFound, with the names that
// the model has, for a profile that it has not.
Result<MigProfileIndex> parse_mig_resource(const MigModel& model, std::string_view resource_name);

struct MigInstance {
  MigProfileIndex profile = 0;
  uint8_t start = 0;  // its first memory slice
  friend auto operator<=>(const MigInstance&, const MigInstance&) = default;
};

// An instance as someone else tells of it.
struct ReportedMigInstance {
  std::string_view profile;  // by either name
  int start = 0;
};

class MigLayout {
 public:
  // Nothing placed. The model must outlive it.
  explicit MigLayout(const MigModel& model);
  // What was reported from a device, in any order. kInvalidInput, naming the instance, for a profile that the model has
  // not, a start that the profile has not, an overlap, or one instance of a profile too many.
  static Result<MigLayout> from_report(const MigModel& model, std::span<const ReportedMigInstance> reported);
  // The same of the device's instances.
  static Result<MigLayout> from_report(const MigModel& model, const GpuDevice& device);

  const MigModel& model() const { return *model_; }
  const MigProfile& profile(MigInstance instance) const { return model_->profiles[instance.profile]; }
  // By start.
  std::vector<MigInstance> instances() const;
  bool empty() const { return occupied_ == 0; }
  bool contains(MigInstance instance) const;
  MigSlices occupied() const { return occupied_; }
  // Whether an instance with media extensions is placed.
  bool media_taken() const { return media_taken_; }
  int count(MigProfileIndex profile) const;
  int allocated_memory_slices() const;
  int allocated_compute_slices() const;

  // The starts at which one more instance of the profile could be placed now.
  MigSlices starts_for(MigProfileIndex profile) const;
  bool fits(MigInstance instance) const { return ((starts_for(instance.profile) >> instance.start) & 1) != 0; }
  // How many more of the profile could be placed if nothing else were.
  int room_for(MigProfileIndex profile) const;
  // It fits.
  void place(MigInstance instance);
  // It is contained.
  void remove(MigInstance instance);

  friend bool operator==(const MigLayout& a, const MigLayout& b) { return a.model_ == b.model_ && a.at_ == b.at_; }

 private:
  static constexpr int8_t kNone = -1;

  const MigModel* model_;
  std::array<int8_t, kMigMemorySlicesMax> at_;  // by start: the profile of the instance that begins there
  MigSlices occupied_ = 0;
  bool media_taken_ = false;
};

}  // namespace berth::model
