#include "packing/mig_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace berth::packing {
namespace {

using model::MigLayout;
using model::MigModel;

const MigModel& a100() { return *model::read_gpu_product("NVIDIA-A100-SXM4-40GB").model; }

MigLayout layout(const std::vector<std::pair<const char*, uint8_t>>& instances) {
  MigLayout out(a100());
  for (const auto& [profile, start] : instances) out.place({a100().find(profile).value(), start});
  return out;
}

TEST(MigConfig, CountsProfiles) {
  const MigLayout some = layout({{"3g.20gb", 4}, {"1g.5gb+me", 1}, {"1g.5gb", 0}, {"1g.5gb", 2}});
  EXPECT_THAT(mig_devices(some),
              testing::ElementsAre(std::pair("1g.5gb", 2), std::pair("1g.5gb+me", 1), std::pair("3g.20gb", 1)));
  EXPECT_EQ(mig_config_name(some), "2x1g.5gb-1x1g.5gb.me-1x3g.20gb");
  EXPECT_EQ(mig_config_name(layout({})), "all-enabled");
}

TEST(MigConfig, AnEntryHasDevicesThatAreAlikeTogether) {
  const MigLayout first = layout({{"3g.20gb", 0}, {"1g.5gb", 4}});
  const MigLayout elsewhere = layout({{"3g.20gb", 4}, {"1g.5gb", 0}});
  const MigLayout nodes[] = {first, layout({}), elsewhere, layout({{"1g.5gb+me", 6}})};
  EXPECT_EQ(mig_config_entry("berth", nodes), R"(berth:
  - devices: [0, 2]
    mig-enabled: true
    mig-devices:
      "1g.5gb": 1
      "3g.20gb": 1
  - devices: [1]
    mig-enabled: true
    mig-devices: {}
  - devices: [3]
    mig-enabled: true
    mig-devices:
      "1g.5gb+me": 1
)");
}

TEST(MigConfig, EveryNameIsALabelsValue) {
  const std::function<void(MigLayout&, uint8_t)> each = [&](MigLayout& now, uint8_t from) {
    const std::string name = mig_config_name(now);
    ASSERT_LE(name.size(), 63U) << name;
    ASSERT_THAT(name, testing::MatchesRegex("[a-z0-9]([a-z0-9.-]*[a-z0-9])?"));
    for (uint8_t s = from; s < 8; ++s) {
      for (model::MigProfileIndex p = 0; p < now.model().profiles.size(); ++p) {
        if (!now.fits({p, s})) continue;
        now.place({p, s});
        each(now, s + 1);
        now.remove({p, s});
      }
    }
  };
  for (const MigModel& m : model::mig_models()) {
    MigLayout empty(m);
    each(empty, 0);
  }
}

model::ResourceList amounts(std::initializer_list<std::pair<const char*, int64_t>> all) {
  model::ResourceList out;
  for (const auto& [name, amount] : all) out.set(name, amount);
  return out;
}

TEST(MigConfig, WholeDevicesAndSlicesAreJudgedTogether) {
  const model::DynamicMig two{&a100(), 2, model::MigHand::kLayouts};
  EXPECT_TRUE(can_be_cut_for(two, amounts({{"nvidia.com/gpu", 1}, {"nvidia.com/mig-7g.40gb", 1}})));
  EXPECT_FALSE(can_be_cut_for(two, amounts({{"nvidia.com/gpu", 2}, {"nvidia.com/mig-7g.40gb", 1}})));
  EXPECT_FALSE(can_be_cut_for(two, amounts({{"nvidia.com/gpu", 3}})));
  EXPECT_TRUE(can_be_cut_for(two, amounts({{"nvidia.com/mig-3g.20gb", 3}, {"nvidia.com/mig-4g.20gb", 1}})));
  EXPECT_FALSE(can_be_cut_for(two, amounts({{"nvidia.com/mig-3g.20gb", 4}, {"nvidia.com/mig-4g.20gb", 1}})));
  EXPECT_FALSE(can_be_cut_for(two, amounts({{"nvidia.com/mig-1g.5gb", INT64_MAX}})));
  EXPECT_FALSE(can_be_cut_for(two, amounts({{"nvidia.com/mig-1g.10gb.nonsense", 1}})));
}

TEST(MigConfig, NamedConfigurationsCutAllDevicesAlike) {
  const model::DynamicMig two{&a100(), 2, model::MigHand::kNamed};
  EXPECT_TRUE(can_be_cut_for(two, amounts({{"nvidia.com/gpu", 2}})));
  EXPECT_TRUE(can_be_cut_for(two, amounts({{"nvidia.com/mig-1g.5gb", 14}})));
  EXPECT_TRUE(can_be_cut_for(two, amounts({{"nvidia.com/mig-1g.5gb", 4}, {"nvidia.com/mig-3g.20gb", 2}})));
  EXPECT_FALSE(can_be_cut_for(two, amounts({{"nvidia.com/gpu", 1}, {"nvidia.com/mig-7g.40gb", 1}})));
  EXPECT_FALSE(can_be_cut_for(two, amounts({{"nvidia.com/mig-1g.5gb", 1}, {"nvidia.com/mig-4g.20gb", 1}})));
}

}  // namespace
}  // namespace berth::packing
