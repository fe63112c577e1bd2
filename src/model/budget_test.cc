#include "model/budget.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

TEST(GpuPrice, OfAModelThatIsNotListedIsTheDearest) {
  const GpuPrices prices{{"H100", 4'000'000}, {"L4", 800'000}};
  const auto price = [&](const char* product) { return gpu_price(prices, {{std::string(kGpuProductLabel), product}}); };
  EXPECT_EQ(price("L4"), 800'000);
  EXPECT_EQ(price("L4-SHARED"), 800'000);
  EXPECT_EQ(price("H100-MIG-1g.10gb"), 4'000'000);
  EXPECT_EQ(price("B300"), 4'000'000);
  EXPECT_EQ(gpu_price(prices, {}), 4'000'000);
  EXPECT_EQ(gpu_price({}, {}), 0);
}

TEST(GpuSevenths, AreTheSlicesOfAnInstance) {
  EXPECT_EQ(gpu_sevenths("nvidia.com/gpu"), 7);
  EXPECT_EQ(gpu_sevenths("amd.com/gpu"), 7);
  EXPECT_EQ(gpu_sevenths("nvidia.com/mig-3g.40gb"), 3);
  EXPECT_EQ(gpu_sevenths("nvidia.com/mig-1g.10gb.me"), 1);
  EXPECT_EQ(gpu_sevenths("nvidia.com/mig-9g.1gb"), 7);
  EXPECT_EQ(gpu_sevenths("nvidia.com/mig-"), 7);
  EXPECT_EQ(gpu_sevenths("cpu"), 0);
}

TEST(Micros, AreReadAndWrittenAsPeopleDo) {
  EXPECT_EQ(parse_micros("2.50"), 2'500'000);
  EXPECT_EQ(parse_micros("0"), 0);
  EXPECT_EQ(parse_micros("1000000000"), kBudgetMax);
  EXPECT_EQ(format_micros(2'500'000), "2.5");
  EXPECT_EQ(format_micros(41'250'001), "41.250001");
  EXPECT_EQ(format_micros(7'000'000), "7");
  for (const char* wrong : {"", "-1", "1e3", "1.0000001", "1000000000.1", "5k", "1.2.3", ".", "NaN"})
    EXPECT_EQ(parse_micros(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace berth::model
