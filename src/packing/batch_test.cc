#include "packing/batch.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>

#include "packing/batch_queue.h"

namespace berth::packing {
namespace {

using testing::Each;
using testing::IsEmpty;
using testing::SizeIs;

Request share(int32_t milli, int64_t cpu_milli = 1000) {
  return {.cpu_milli = cpu_milli, .devices = 1, .milli_each = milli};
}
Request whole(int32_t devices, int64_t cpu_milli = 1000) {
  return {.cpu_milli = cpu_milli, .devices = devices, .milli_each = kMilliPerDevice};
}
constexpr Request kCpu = {.cpu_milli = 1000};

// A fleet with Berth's own policy, and what it borrows.
struct Own {
  explicit Own(std::vector<Node> nodes)
      : measure(typical_mix({}, 95)),
        policy(make_berth({.measure = measure})),
        fleet(std::move(nodes), *policy, measure, 1) {}

  std::vector<std::optional<Placement>> plan(const std::vector<Request>& requests, const BatchOptions& options = {}) {
    std::vector<WaitingRequest> waiting;
    for (const Request& request : requests) waiting.push_back({.request = request});
    return plan_batch(fleet, waiting, options);
  }

  FragmentMeasure measure;
  std::unique_ptr<PlacementPolicy> policy;
  Fleet fleet;
};

std::vector<Node> nodes(int count, int devices, int64_t cpu_milli = 64'000) {
  std::vector<Node> out;
  for (int n = 0; n < count; ++n) out.emplace_back(cpu_milli, 1 << 30, devices, 0);
  return out;
}

std::vector<Request> times(int count, const Request& request) { return std::vector<Request>(count, request); }

std::vector<Request> operator+(std::vector<Request> a, const std::vector<Request>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(PlanBatch, PlacesAllWhereAllFit) {
  Own own(nodes(2, 2));
  EXPECT_THAT(own.plan({share(500), whole(1), whole(2), share(500), kCpu}), Each(testing::Ne(std::nullopt)));
  EXPECT_EQ(own.fleet.free_milli(), 0);
}

TEST(PlanBatch, TakesTheSharesThatFillADeviceAndLetsOthersWait) {
  Own own(nodes(1, 4));
  // As they wait, every device would go to a share of 810.
  const auto places = own.plan(times(4, share(810)) + times(4, share(600)) + times(4, share(400)));
  EXPECT_EQ(own.fleet.free_milli(), 0);
  for (size_t n = 0; n < 4; ++n) EXPECT_EQ(places[n], std::nullopt) << n;
}

TEST(PlanBatch, ManyDevicesComeBeforeWhatWouldBreakUpTheNode) {
  Own own(nodes(2, 8));
  const auto places = own.plan(times(9, whole(1)) + times(1, whole(8)));
  EXPECT_TRUE(places.back());
  EXPECT_EQ(own.fleet.free_milli(), 0);
}

TEST(PlanBatch, LeavesNoDeviceWithoutCpuWhereOtherRequestsWouldFillIt) {
  Own own(nodes(4, 8, 32'000));  // 4 cores a device
  const auto places = own.plan(times(40, whole(1, 7000)) + times(40, whole(1, 1000)));
  EXPECT_EQ(own.fleet.free_milli(), 0) << "half of each would fill it";
}

TEST(PlanBatch, NeverMovesWhatRanBefore) {
  Own own(nodes(1, 2));
  const auto before = own.fleet.place(share(810));
  ASSERT_TRUE(before);
  own.plan(times(4, whole(1)));
  EXPECT_EQ(own.fleet.nodes()[0].devices().free(), 190);
}

TEST(PlanBatch, WhatWasPassedOverOftenEnoughGoesFirst) {
  Own own(nodes(1, 1));
  const std::vector<WaitingRequest> waiting = {
      {.request = whole(1)}, {.request = share(810), .passed_over = kPassedOverMax}, {.request = share(500)}};
  const auto places = plan_batch(own.fleet, waiting);
  EXPECT_TRUE(places[1]);
  EXPECT_FALSE(places[0] || places[2]);
}

TEST(BatchQueue, WhatFitsNowhereTakesUpNoWindow) {
  Own own(nodes(1, 1));
  BatchQueue queue(1);
  queue.add(whole(8));
  const uint64_t second = queue.add(whole(1));
  const auto placed = queue.run(own.fleet);
  ASSERT_THAT(placed, SizeIs(1));
  EXPECT_EQ(placed[0].ticket, second);
  EXPECT_EQ(queue.waiting(), 1);
  EXPECT_THAT(queue.run(own.fleet), IsEmpty());
}

// Whole devices use more than a share of 810, and new ones come for ever.
TEST(BatchQueue, TheHeadIsPassedOverAFewTimesAtMost) {
  Own own(nodes(1, 1));
  BatchQueue queue(8);
  const uint64_t head = queue.add(share(810));
  for (int batch = 1; batch <= kPassedOverMax + 1; ++batch) {
    const uint64_t other = queue.add(whole(1));
    const auto placed = queue.run(own.fleet);
    ASSERT_THAT(placed, SizeIs(1));
    const bool due = batch == kPassedOverMax + 1;
    EXPECT_EQ(placed[0].ticket, due ? head : other) << "batch " << batch;
    if (due) break;
    own.fleet.give_back(whole(1), placed[0].placement);
  }
}

Request random_request() {
  const int64_t cpu = *rc::gen::inRange(0, 20'000);
  const int kind = *rc::gen::inRange(0, 4);
  if (kind == 0) return {.cpu_milli = cpu};
  if (kind == 1) return whole(*rc::gen::inRange(1, 5), cpu);
  Request request = share(*rc::gen::inRange(1, 1000), cpu);
  request.models = *rc::gen::element(ModelSet{kAnyModel}, ModelSet{1}, ModelSet{2});
  return request;
}

RC_GTEST_PROP(PlanBatch, IsAPlanThatHoldsAndLeavesNothingThatFits, ()) {
  std::vector<Node> fleet;
  for (int n = *rc::gen::inRange(1, 6); n > 0; --n)
    fleet.emplace_back(*rc::gen::inRange(0, 100'000), 1 << 30, *rc::gen::inRange(0, 9), n % 2);
  std::vector<WaitingRequest> waiting;
  for (int n = *rc::gen::inRange(0, 60); n > 0; --n)
    waiting.push_back({.request = random_request(), .passed_over = *rc::gen::inRange(0, 5)});
  Own own(fleet);
  Own again(fleet);
  const BatchOptions options = {.looks_max = *rc::gen::element(0, 100, 100'000)};
  const auto places = plan_batch(own.fleet, waiting, options);
  RC_ASSERT(places == plan_batch(again.fleet, waiting, options));
  for (size_t n = 0; n < waiting.size(); ++n) {
    if (!places[n]) {
      RC_ASSERT(!own.fleet.fits(waiting[n].request));
      continue;
    }
    Node& node = fleet[places[n]->node];
    RC_ASSERT(waiting[n].request.devices == 0 || (waiting[n].request.models >> node.model() & 1) != 0);
    node.take(waiting[n].request, places[n]->devices);  // checks that all of it was there
  }
  for (size_t n = 0; n < fleet.size(); ++n)
    RC_ASSERT(fleet[n].devices().free_milli == own.fleet.nodes()[n].devices().free_milli);
}

}  // namespace
}  // namespace berth::packing
