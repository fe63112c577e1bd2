#include "packing/fragment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace berth::packing {
namespace {

// The definition, request by request and device by device.
int64_t by_definition(const TypicalMix& mix, int64_t cpu_milli, const Devices& devices, ModelIndex model) {
  int64_t sum = 0;
  for (const auto& [request, count] : mix.requests) {
    int64_t free = 0;
    int64_t too_full = 0;
    int with_room = 0;
    for (int d = 0; d < devices.count; ++d) {
      free += devices.free_milli[d];
      if (devices.free_milli[d] >= request.milli_each) ++with_room;
      else too_full += devices.free_milli[d];
    }
    const bool runs = request.devices > 0 && (request.models >> model & 1) != 0 && request.cpu_milli <= cpu_milli &&
                      with_room >= request.devices;
    sum += count * (runs ? too_full : free);
  }
  return sum;
}

Request any_request() {
  const int32_t devices = *rc::gen::element(0, 1, 1, 1, 2, 4, 8);
  const int32_t milli = devices == 0 ? 0 : devices > 1 ? 1000 : *rc::gen::element(1, 230, 460, 500, 810, 999, 1000);
  return {.cpu_milli = *rc::gen::inRange<int64_t>(0, 6) * 1000,
          .memory_bytes = *rc::gen::inRange<int64_t>(0, 3),
          .devices = devices,
          .milli_each = milli,
          .models = *rc::gen::element(ModelSet{kAnyModel}, ModelSet{1}, ModelSet{2}, ModelSet{3}, ModelSet{6})};
}

Devices any_devices() {
  Devices devices;
  devices.count = *rc::gen::inRange(0, kDevicesMax + 1);
  for (int d = 0; d < devices.count; ++d)
    devices.free_milli[d] = *rc::gen::element(0, 1, 190, 459, 460, 500, 811, 1000);
  return devices;
}

RC_GTEST_PROP(FragmentMeasure, IsWhatTheDefinitionSays, ()) {
  std::vector<Request> requests(*rc::gen::inRange<size_t>(0, 12));
  for (Request& request : requests) request = any_request();
  const TypicalMix mix = typical_mix(requests, *rc::gen::element(int64_t{50}, int64_t{95}, int64_t{100}));
  const FragmentMeasure measure(mix);
  RC_ASSERT(measure.unit() == mix.count);
  for (int i = 0; i < 5; ++i) {
    const Devices devices = any_devices();
    const int64_t cpu = *rc::gen::inRange<int64_t>(0, 7) * 1000 - 1 + i % 2;
    const auto model = *rc::gen::inRange<ModelIndex>(0, 4);
    RC_ASSERT(measure.of(cpu, devices, model) == by_definition(mix, cpu, devices, model));
  }
}

TEST(FragmentMeasure, CountsWhatIsTooFullAndWhatCannotRun) {
  const Request half = {.cpu_milli = 2000, .devices = 1, .milli_each = 500};
  const Request pair = {.cpu_milli = 4000, .devices = 2, .milli_each = 1000};
  const Request no_device = {.cpu_milli = 1000};
  const FragmentMeasure measure(typical_mix({half, pair, no_device}, 100));
  Node node(8000, 0, 2, 0);
  EXPECT_EQ(measure.unit(), 3);
  EXPECT_EQ(measure.of(node), 2000);  // only for what wants no device
  node.take({.cpu_milli = 5000, .devices = 1, .milli_each = 600}, 0b01);
  // 400 and 1000 are free: the half cannot use 400, the pair nothing, for want of CPU and of a device.
  EXPECT_EQ(measure.of(node), 400 + 1400 + 1400);
}

TEST(TypicalMix, TakesTheMostFrequentUntilThePercentage) {
  const Request often = {.cpu_milli = 1000, .memory_bytes = 1, .devices = 1, .milli_each = 500};
  Request other_memory = often;
  other_memory.memory_bytes = 2;
  const Request seldom = {.cpu_milli = 1000, .devices = 2, .milli_each = 1000};
  const Request larger = {.cpu_milli = 2000, .devices = 2, .milli_each = 1000};
  const std::vector<Request> requests = {seldom, often, larger, often, other_memory};
  const TypicalMix most = typical_mix(requests, 60);
  ASSERT_EQ(most.requests.size(), 1U);
  EXPECT_EQ(most.requests[0].count, 3);
  EXPECT_EQ(most.requests[0].request.memory_bytes, 0);
  const TypicalMix more = typical_mix(requests, 61);
  ASSERT_EQ(more.requests.size(), 2U);
  EXPECT_EQ(more.requests[1].request.cpu_milli, 2000) << "of equally frequent ones the larger comes first";
  EXPECT_EQ(more.count, 4);
}

TEST(TypicalMix, IsBounded) {
  std::vector<Request> requests;
  for (int64_t cpu = 1; cpu <= 2 * static_cast<int64_t>(kTypicalRequestsMax); ++cpu)
    requests.push_back({.cpu_milli = cpu, .devices = 1, .milli_each = 1000});
  const TypicalMix mix = typical_mix(requests, 100);
  EXPECT_EQ(mix.requests.size(), kTypicalRequestsMax);
  EXPECT_EQ(mix.count, static_cast<int64_t>(kTypicalRequestsMax));
}

}  // namespace
}  // namespace berth::packing
