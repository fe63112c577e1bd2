#include "packing/mig_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace berth::packing {
namespace {

using model::MigInstance;
using model::MigLayout;
using model::MigModel;
using model::MigProfileIndex;

const MigModel& a100() { return *model::read_gpu_product("NVIDIA-A100-SXM4-40GB").model; }
const MigModel& h100() { return *model::read_gpu_product("NVIDIA-H100-80GB-HBM3").model; }

MigInstance at(std::string_view profile, uint8_t start) { return {a100().find(profile).value(), start}; }

MigLayout with(const std::vector<MigInstance>& instances) {
  MigLayout layout(a100());
  for (const MigInstance one : instances) layout.place(one);
  return layout;
}

// The start that Berth's policy takes on one device.
int start_of(const MigLayout& layout, std::string_view profile, const std::vector<std::pair<const char*, int>>& asked) {
  MigDemand demand;
  for (const auto& [name, count] : asked) demand.observe(name, count);
  const auto place = most_room(std::span(&layout, 1), profile, demand);
  return place ? place->instance.start : -1;
}

TEST(MostRoom, LeavesTheOnlyStartOfAFourSliceInstanceFree) {
  const std::vector<std::pair<const char*, int>> mix = {{"1g.5gb", 4}, {"2g.10gb", 2}, {"3g.20gb", 1}, {"4g.20gb", 1}};
  EXPECT_EQ(start_of(with({}), "3g.20gb", mix), 4);
  EXPECT_EQ(start_of(with({}), "2g.10gb", mix), 4);
  EXPECT_EQ(start_of(with({}), "1g.5gb", mix), 6);
  EXPECT_EQ(start_of(with({at("1g.5gb", 6)}), "2g.10gb", mix), 4);
  EXPECT_EQ(start_of(with({at("3g.20gb", 4)}), "4g.20gb", mix), 0);
}

TEST(MostRoom, DependsOnWhatIsAskedFor) {
  const std::vector<MigLayout> fleet = {with({}), with({at("3g.20gb", 4)})};
  MigDemand whole;
  whole.observe("7g.40gb");
  EXPECT_EQ(most_room(fleet, "1g.5gb", whole)->device, 1U) << "an idle device is worth more";
  MigDemand half;
  half.observe("4g.20gb");
  EXPECT_EQ(most_room(fleet, "1g.5gb", half)->device, 0U) << "both can have a 4g.20gb, and the idle one keeps it";
}

TEST(MostRoom, PrefersTheDeviceThatIsSpoiltAlready) {
  MigDemand demand;
  demand.observe("1g.5gb", 5);
  demand.observe("7g.40gb", 1);
  const std::vector<MigLayout> fleet = {with({}), with({at("1g.5gb", 6)}), with({})};
  EXPECT_EQ(most_room(fleet, "1g.5gb", demand)->device, 1U);
  EXPECT_EQ(first_fit(fleet, "1g.5gb")->device, 0U);
  EXPECT_EQ(first_fit(fleet, "1g.5gb")->instance, at("1g.5gb", 0));
}

TEST(MostRoom, TakesAnyModelThatHasTheProfile) {
  MigDemand demand;
  std::vector<MigLayout> fleet = {MigLayout(a100()), MigLayout(h100())};
  EXPECT_EQ(most_room(fleet, "1g.20gb", demand)->device, 1U);
  EXPECT_EQ(first_fit(fleet, "3g.20gb")->device, 0U);
  EXPECT_FALSE(most_room(fleet, "1g.23gb", demand));
  EXPECT_FALSE(first_fit(fleet, "1g.23gb"));
  EXPECT_EQ(most_room(fleet, "1g.10gb.me", demand)->device, 1U);
}

TEST(MigDemand, FollowsWhatIsObserved) {
  MigDemand demand;
  const MigLayout empty(a100());
  const int64_t alike = demand.room(a100()).of(empty);
  demand.observe("7g.40gb", 100);
  EXPECT_EQ(demand.room(a100()).of(empty), 64 * 1000);
  EXPECT_NE(alike, 64 * 1000);
  demand.observe("1g.5gb", 12);
  EXPECT_EQ(demand.room(a100()).of(empty), 64 * 1000) << "not yet an eighth more";
  demand.observe("1g.5gb", 88);
  EXPECT_EQ(demand.room(a100()).of(empty), 64 * 500 + 28 * 500);
}

RC_GTEST_PROP(MostRoom, FindsAPlaceWhereverThereIsOneAndNoneCostsLess, ()) {
  MigDemand demand;
  for (const model::MigProfile& p : a100().profiles) demand.observe(p.name, *rc::gen::inRange(0, 9));
  std::vector<MigLayout> fleet(3, MigLayout(a100()));
  for (int step = 0; step < 25; ++step) {
    const MigProfileIndex p = *rc::gen::inRange<MigProfileIndex>(0, 7);
    const std::string& name = a100().profiles[p].name;
    const auto place = most_room(fleet, name, demand);
    RC_ASSERT(place.has_value() == first_fit(fleet, name).has_value());
    if (!place) {
      MigLayout& any = fleet[*rc::gen::inRange<size_t>(0, fleet.size())];
      const auto there = any.instances();
      if (!there.empty()) any.remove(there[*rc::gen::inRange<size_t>(0, there.size())]);
      continue;
    }
    const MigRoom& room = demand.room(a100());
    const int64_t cost = room.cost(fleet[place->device], place->instance);
    RC_ASSERT(cost >= 0);
    for (const MigLayout& layout : fleet)
      for (uint8_t s = 0; s < 8; ++s)
        if (layout.fits({p, s})) RC_ASSERT(room.cost(layout, {p, s}) >= cost);
    fleet[place->device].place(place->instance);
  }
}

}  // namespace
}  // namespace berth::packing
