#include "packing/mig_fit.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "packing/brute_force_geometry_test.h"

namespace berth::packing {
namespace {

using model::MigLayout;
using model::MigModel;

// Slices of any profiles, as many as could be on the devices, and a few more.
MigWaiting some_slices(const MigModel& model, int64_t devices, bool media, Rng& rng) {
  MigWaiting out;
  int64_t left = devices * model.memory_slices + static_cast<int64_t>(rng.below(3));
  while (left > 0) {
    const model::MigProfile& profile = model.profiles[rng.below(model.profiles.size())];
    if (profile.media_extensions && !media) continue;
    ++out[profile.name];
    left -= profile.memory_slices + static_cast<int64_t>(rng.below(2));
  }
  return out;
}

bool search_finds(const MigModel& model, const MigWaiting& slices, int64_t devices) {
  MigDemand demand;
  const std::vector<MigDevice> empty(static_cast<size_t>(devices), MigDevice{MigLayout(model), MigLayout(model)});
  return plan_geometry(empty, slices, demand).served == slices;
}

TEST(MigFit, SaysOfOneDeviceWhatTryingEverythingSays) {
  for (const MigModel& model : model::mig_models()) {
    std::set<MigWaiting> possible;
    MigDemand demand;
    for (const MigLayout& layout : all_beside(MigLayout(model))) {
      MigWaiting slices;
      for (const model::MigInstance instance : layout.instances()) ++slices[layout.profile(instance).name];
      if (!possible.insert(slices).second) continue;
      EXPECT_TRUE(may_fit(model, slices, 1)) << model.name;
      EXPECT_TRUE(place_largest_first(model, slices, 1, demand)) << model.name;
    }
    Rng rng(1);
    for (int trial = 0; trial < 500; ++trial) {
      const MigWaiting slices = some_slices(model, 1, false, rng);
      EXPECT_EQ(may_fit(model, slices, 1), possible.contains(slices)) << model.name;
    }
  }
}

TEST(MigFit, SaysOfSeveralWhatTheSearchFinds) {
  const MigModel& model = model::mig_models().front();
  Rng rng(2);
  int fits = 0, missed = 0, idle_hope = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const auto devices = static_cast<int64_t>(2 + rng.below(3));
    const bool media = rng.chance(50);
    const MigWaiting slices = some_slices(model, devices, media, rng);
    const bool found = search_finds(model, slices, devices);
    fits += found;
    MigDemand demand;
    if (media)
      EXPECT_TRUE(may_fit(model, slices, devices) || !found), idle_hope += may_fit(model, slices, devices) && !found;
    else EXPECT_EQ(may_fit(model, slices, devices), found);
    const bool placed = place_largest_first(model, slices, devices, demand).has_value();
    if (media) EXPECT_TRUE(found || !placed), missed += found && !placed;
    else EXPECT_EQ(placed, found);
  }
  EXPECT_GT(fits, 40);
  EXPECT_LT(fits, 360);
  EXPECT_LT(idle_hope, 4) << "with +me, of what does not fit";
  EXPECT_LT(missed, 4) << "with +me, of what fits";
}

TEST(MigFit, PlacesWhatItSays) {
  const MigModel& model = *model::read_gpu_product("NVIDIA-A100-SXM4-40GB").model;
  MigDemand demand;
  const MigWaiting slices = {{"1g.5gb", 5}, {"1g.5gb+me", 2}, {"3g.20gb", 1}, {"4g.20gb", 1}};
  const auto layouts = place_largest_first(model, slices, 3, demand).value();
  MigWaiting placed;
  for (const MigLayout& layout : layouts)
    for (const model::MigInstance instance : layout.instances()) ++placed[layout.profile(instance).name];
  EXPECT_EQ(placed, slices);
}

}  // namespace
}  // namespace berth::packing
