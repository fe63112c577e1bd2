#include "packing/model_scarcity.h"

#include <gtest/gtest.h>

namespace berth::packing {
namespace {

Request ask(ModelSet models, int32_t devices = 1) {
  return {.devices = devices, .milli_each = kMilliPerDevice, .models = models};
}

TEST(ModelScarcity, WhatNobodyNamesRunsShortWithTheFleet) {
  const std::vector<Request> requests = {ask(kAnyModel)};
  const std::vector<double> scarcity = model_scarcity(requests, {10, 30});
  EXPECT_DOUBLE_EQ(scarcity[0], scarcity[1]);
  EXPECT_NEAR(scarcity[0], 0.5, 0.07) << "from a demand of all devices on, of twice as many at most";
}

TEST(ModelScarcity, WhatIsNamedMoreThanThereIsRunsShortEarly) {
  // Half of the demand names model 0, which is a quarter of the fleet: short from half of the fleet's demand on.
  const std::vector<Request> requests = {ask(1), ask(kAnyModel)};
  const std::vector<double> scarcity = model_scarcity(requests, {10, 30});
  EXPECT_NEAR(scarcity[0], 0.75, 0.07);
  EXPECT_LT(scarcity[1], scarcity[0] - 0.2);
}

TEST(ModelScarcity, WhoCouldHaveTwoModelsTakesTheOneThatIsLeft) {
  // One half names model 0, the other takes 0 or 1: together they have what they need of 0, 1 and nothing of 2.
  const std::vector<Request> requests = {ask(1), ask(3)};
  const std::vector<double> scarcity = model_scarcity(requests, {10, 10, 20});
  EXPECT_DOUBLE_EQ(scarcity[0], scarcity[1]);
  EXPECT_DOUBLE_EQ(scarcity[2], 0);
}

TEST(ModelScarcity, SharesAndSeveralDevicesCountForWhatTheyTake) {
  const Request share{.devices = 1, .milli_each = 500, .models = 1};
  const std::vector<Request> shares = {share, share, ask(kAnyModel)}, whole = {ask(1), ask(kAnyModel)},
                             more = {ask(1, 4), ask(kAnyModel)};
  EXPECT_EQ(model_scarcity(shares, {10, 30}), model_scarcity(whole, {10, 30}));
  EXPECT_GT(model_scarcity(more, {10, 30})[0], model_scarcity(whole, {10, 30})[0]);
}

TEST(ModelScarcity, NothingIsShortOfWhatNobodyAsksForOrNobodyHas) {
  EXPECT_EQ(model_scarcity({}, {10, 30}), (std::vector<double>{0, 0}));
  EXPECT_EQ(model_scarcity(std::vector<Request>{ask(kAnyModel)}, {}), std::vector<double>{});
  EXPECT_EQ(model_scarcity(std::vector<Request>{ask(2)}, {10, 0})[0], 0);
}

}  // namespace
}  // namespace berth::packing
