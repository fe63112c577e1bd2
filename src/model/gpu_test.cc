#include "model/gpu.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(GpuMemory, IsWhatTheLabelSays) {
  const auto memory = [](const char* mib) { return gpu_memory({{"nvidia.com/gpu.memory", mib}}); };
  EXPECT_EQ(memory("81920"), 80 * kGiB);
  for (const char* wrong : {"", "0", "-1", "80Gi", "81920 ", "8388609", "9223372036854775808"})
    EXPECT_EQ(memory(wrong), 0) << wrong;
  EXPECT_EQ(gpu_memory({{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"}}), 0);
}

TEST(GpuMemory, AShareOfItIsAPartOfTheGpu) {
  const auto part = [](int64_t bytes, int64_t of) { return part_of_memory({0, bytes, ""}, of); };
  EXPECT_EQ(part(10 * kGiB, 80 * kGiB), 125'000);
  EXPECT_EQ(part(5 * kGiB, 15 * kGiB), 333'333) << "three of them are no more than one";
  EXPECT_EQ(part(1, kGpuMemoryMax), 1) << "nothing is for nothing";
  EXPECT_EQ(part(INT64_MAX, 80 * kGiB), kWholeGpu) << "no GPU there is that large";
}

}  // namespace
}  // namespace berth::model
