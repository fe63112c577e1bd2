#include "engine/request_mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing.h"

namespace berth::engine::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kGpu = "nvidia.com/gpu";

// `times` pods that ask for so many GPUs.
void observe(RequestMix& mix, int64_t gpus, size_t times) {
  ResourceTable resources;
  const PodClass cls = compile_class(make_pod("p", {{"cpu", 1000}, {kGpu, gpus}}).spec, resources);
  for (size_t i = 0; i < times; ++i) mix.observe(cls, resources);
}

// "GPUs×times", the most frequent first.
std::string text_of(const RequestMix& mix) {
  std::string out;
  for (const auto& [shape, times] : mix.shapes())
    out += std::to_string(shape.gpus.at(0).second) + "x" + std::to_string(times) + " ";
  return out;
}

TEST(RequestMix, CountsShapesOverTheWindow) {
  RequestMix mix;
  EXPECT_FALSE(mix.settle());
  observe(mix, 1, 2);
  observe(mix, 8, 3);
  EXPECT_THAT(mix.shapes(), IsEmpty()) << "not before settle()";
  EXPECT_TRUE(mix.settle());
  EXPECT_EQ(text_of(mix), "8x3 1x2 ");
  observe(mix, 4, RequestMix::kWindow - 1);
  EXPECT_TRUE(mix.settle());
  EXPECT_EQ(text_of(mix), "4x999 8x1 ") << "the oldest have left";
}

TEST(RequestMix, ChangesOnlyWhenAnEighthOfTheWindowIsNew) {
  RequestMix mix;
  observe(mix, 1, RequestMix::kWindow);
  ASSERT_TRUE(mix.settle());
  observe(mix, 2, RequestMix::kWindow / 8 - 1);
  EXPECT_FALSE(mix.settle());
  observe(mix, 2, 1);
  const uint64_t before = mix.version();
  EXPECT_TRUE(mix.settle());
  EXPECT_EQ(text_of(mix), "1x875 2x125 ");
  EXPECT_EQ(mix.version(), before + 1);
  EXPECT_FALSE(mix.settle());
}

TEST(RequestMix, StaysTheSameWhileTheSameComes) {
  RequestMix mix;
  observe(mix, 1, RequestMix::kWindow);
  ASSERT_TRUE(mix.settle());
  observe(mix, 1, RequestMix::kWindow);
  EXPECT_FALSE(mix.settle()) << "no score has to be made again";
}

TEST(RequestMix, KeepsTheMostFrequentShapesAndPassesOverPodsWithoutGpus) {
  RequestMix mix;
  for (int64_t gpus = 1; gpus <= 70; ++gpus) observe(mix, gpus, gpus > 6 ? 2 : 1);
  ResourceTable resources;
  mix.observe(compile_class(make_pod("p", {{"cpu", 1000}}).spec, resources), resources);
  ASSERT_TRUE(mix.settle());
  EXPECT_THAT(mix.shapes(), SizeIs(RequestMix::kShapesMax));
  for (const auto& [shape, times] : mix.shapes()) EXPECT_EQ(times, 2);
}

}  // namespace
}  // namespace berth::engine::testing
