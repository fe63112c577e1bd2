#include "packing/packing_bound.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "packing/linear_program.h"

namespace berth::packing {
namespace {

constexpr double kClose = 0.1;  // milli-devices

Request share(int32_t milli, int64_t cpu_milli = 0) {
  return {.cpu_milli = cpu_milli, .devices = 1, .milli_each = milli};
}
Request whole(int32_t devices, int64_t cpu_milli = 0) {
  return {.cpu_milli = cpu_milli, .devices = devices, .milli_each = kMilliPerDevice};
}

double batch_bound(const std::vector<Node>& nodes, const std::vector<CountedRequest>& requests) {
  return batch_bound_milli(nodes, requests).value_or(-1);
}
double online_bound(double devices, const std::vector<CountedRequest>& requests) {
  return online_bound_milli(devices, requests).value_or(-1);
}

TEST(LinearProgram, FindsTheOptimumAndItsPrices) {
  // 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18.
  const std::vector<LinearColumn> columns = {{.value = 3, .entries = {{0, 1}, {2, 3}}},
                                             {.value = 5, .entries = {{1, 2}, {2, 2}}}};
  const auto best = [&](std::span<const double> prices) -> std::optional<LinearColumn> {
    for (const LinearColumn& column : columns)
      if (gain_of(column, prices) > 1e-9) return column;
    return std::nullopt;
  };
  const auto optimum = maximise({4, 12, 18}, best, 10);
  ASSERT_TRUE(optimum);
  EXPECT_NEAR(optimum->value, 36, 1e-6);
  EXPECT_NEAR(optimum->prices[1], 1.5, 1e-6);
  EXPECT_NEAR(optimum->prices[2], 1, 1e-6);
  EXPECT_FALSE(maximise({4, 12, 18}, best, 1)) << "one column is not enough";
}

TEST(LinearProgram, SaysThatNothingLimitsIt) {
  const auto best = [](std::span<const double>) { return LinearColumn{.value = 1, .entries = {{0, -1}}}; };
  EXPECT_FALSE(maximise({1}, best, 10));
}

TEST(BatchBound, KnowsThePatternsOfShares) {
  const std::vector<Node> nodes = {Node(0, 0, 8, 0)};
  EXPECT_NEAR(batch_bound(nodes, {{share(810), 100}}), 6480, kClose);
  EXPECT_NEAR(batch_bound(nodes, {{share(810), 100}, {share(190), 3}}), 6480 + 3 * 190, kClose);
  EXPECT_NEAR(batch_bound(nodes, {{share(600), 100}, {share(400), 4}}), 4 * 1000 + 4 * 600, kClose);
  EXPECT_NEAR(batch_bound(nodes, {{whole(1), 3}}), 3000, kClose);
}

TEST(BatchBound, KnowsCpuModelsAndHowManyDevicesANodeHas) {
  const std::vector<Node> nodes = {Node(8000, 0, 2, 0), Node(8000, 0, 2, 1)};
  EXPECT_NEAR(batch_bound(nodes, {{whole(1, 8000), 10}}), 2000, kClose);
  EXPECT_NEAR(batch_bound(nodes, {{whole(4), 1}}), 0, kClose);
  Request first = whole(1);
  first.models = 1;
  EXPECT_NEAR(batch_bound(nodes, {{first, 10}}), 2000, kClose);
}

TEST(OnlineBound, TakesLargeSharesAsOftenAsWholeDevices) {
  // Half of the devices go to shares of 810, whoever packs.
  EXPECT_NEAR(online_bound(100, {{share(810), 100}, {whole(1), 100}}), 50 * 1810, kClose);
  EXPECT_NEAR(online_bound(100, {{share(500), 100}, {whole(1), 100}}), 100 * 1000, kClose);
  EXPECT_NEAR(online_bound(100, {{share(810), 10}, {whole(1), 10}}), 10 * 1810, kClose) << "all of it fits";
}

// The most milli-devices that requests can use on nodes of devices alone, by trying everything.
int64_t most(std::vector<Node>& nodes, const std::vector<Request>& requests, size_t at = 0) {
  if (at == requests.size()) return 0;
  int64_t best = most(nodes, requests, at + 1);
  for (Node& node : nodes) {
    if (!node.fits(requests[at])) continue;
    for (int d = 0; d < node.devices().count; ++d) {
      if (node.devices().free_milli[d] < requests[at].milli_each) continue;
      const DeviceMask devices = DeviceMask{1} << d;
      node.take(requests[at], devices);
      best = std::max(best, requests[at].device_milli() + most(nodes, requests, at + 1));
      node.give_back(requests[at], devices);
    }
  }
  return best;
}

RC_GTEST_PROP(BatchBound, NothingCanBeBetter, ()) {
  std::vector<Node> nodes;
  for (int n = *rc::gen::inRange(1, 3); n > 0; --n)
    nodes.emplace_back(*rc::gen::inRange(0, 10), 1 << 20, *rc::gen::inRange(1, 3), n % 2);
  std::vector<Request> requests;
  std::vector<CountedRequest> counted;
  for (int n = *rc::gen::inRange(0, 6); n > 0; --n) {
    requests.push_back(share(*rc::gen::inRange(1, 1001), *rc::gen::inRange(0, 6)));
    requests.back().models = *rc::gen::element(ModelSet{kAnyModel}, ModelSet{1}, ModelSet{2});
    counted.push_back({.request = requests.back(), .count = 1});
  }
  RC_ASSERT(batch_bound(nodes, counted) >= static_cast<double>(most(nodes, requests)) - kClose);
}

}  // namespace
}  // namespace berth::packing
