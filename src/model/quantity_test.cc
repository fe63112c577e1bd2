#include "model/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::model {
namespace {

constexpr int64_t kRefused = -1'000'000'007;

// Value() and MilliValue() of k8s.io/apimachinery v0.35.4, as Go gave them; kRefused where Go refuses the text, or
// where it silently gives a wrong number (saturated, wrapped or 0) and Berth refuses.
struct QuantityCase {
  std::string text;
  int64_t value;
  int64_t milli;
};
void PrintTo(const QuantityCase& one, std::ostream* out) { *out << one.text; }

class Quantities : public ::testing::TestWithParam<QuantityCase> {};

TEST_P(Quantities, EqualThoseOfKubernetesOrAreRefused) {
  EXPECT_EQ(parse_quantity(GetParam().text).value_or(kRefused), GetParam().value);
  EXPECT_EQ(parse_quantity(GetParam().text, 3).value_or(kRefused), GetParam().milli);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Quantities,
    ::testing::Values(
        QuantityCase{"1", 1, 1000}, QuantityCase{"0", 0, 0}, QuantityCase{"0.1", 1, 100}, QuantityCase{"1.5", 2, 1500},
        QuantityCase{"100m", 1, 100}, QuantityCase{"1.5Gi", 1610612736, 1610612736000},
        QuantityCase{"1e3", 1000, 1000000}, QuantityCase{"1E3", 1000, 1000000}, QuantityCase{"1e-3", 1, 1},
        QuantityCase{"12e6", 12000000, 12000000000}, QuantityCase{"0.0005", 1, 1}, QuantityCase{"1n", 1, 1},
        QuantityCase{"1u", 1, 1}, QuantityCase{".5", 1, 500}, QuantityCase{"5.", 5, 5000}, QuantityCase{"+1", 1, 1000},
        QuantityCase{"-1", -1, -1000}, QuantityCase{"1k", 1000, 1000000}, QuantityCase{"1Ki", 1024, 1024000},
        QuantityCase{"0.3Mi", 314573, 314572800}, QuantityCase{"00012", 12, 12000},
        QuantityCase{"1.23456789123456789Gi", 1325607180, 1325607179387},
        QuantityCase{"123456789.123456789", 123456790, 123456789124},
        QuantityCase{"9223372036854775807", INT64_MAX, kRefused}, QuantityCase{"7Ei", 8070450532247928832, kRefused},
        QuantityCase{"1E", 1000000000000000000, kRefused}, QuantityCase{"8Ei", kRefused, kRefused},
        QuantityCase{"100E", kRefused, kRefused}, QuantityCase{"1e400", kRefused, kRefused},
        QuantityCase{"1e99999999999999999999", kRefused, kRefused}, QuantityCase{"1K", kRefused, kRefused},
        QuantityCase{"1_000", kRefused, kRefused}, QuantityCase{"", kRefused, kRefused},
        QuantityCase{".", kRefused, kRefused}, QuantityCase{"0x10", kRefused, kRefused},
        QuantityCase{"1e", kRefused, kRefused}, QuantityCase{"1Mi5", kRefused, kRefused},
        QuantityCase{"1GiB", kRefused, kRefused}, QuantityCase{" 1", kRefused, kRefused},
        QuantityCase{"1 ", kRefused, kRefused}, QuantityCase{"1 Gi", kRefused, kRefused},
        QuantityCase{"--1", kRefused, kRefused}, QuantityCase{"1..5", kRefused, kRefused},
        QuantityCase{"1m5", kRefused, kRefused}, QuantityCase{"inf", kRefused, kRefused},
        QuantityCase{"NaN", kRefused, kRefused}));

TEST(Resources, WhatAServerHoldsIsNeverTooLargeButCountsAsTheLargestAmount) {
  const auto saturated = [](std::string_view text) { return parse_resource("memory", text, Overflow::kSaturates); };
  for (const char* text :
       {"100E", "1e400", "8Ei", "1e99999999999999999999", "1000000000000000000000000000000", "9223372036854775808"})
    EXPECT_EQ(saturated(text).value_or(kRefused), INT64_MAX) << text;
  EXPECT_EQ(saturated("1Gi").value_or(kRefused), int64_t{1} << 30);
  EXPECT_EQ(saturated("1.00000000000000000000000000000000001").value_or(kRefused), 2);
  EXPECT_EQ(saturated("0.00000000000000000000000000000000001").value_or(kRefused), 1);
  EXPECT_EQ(saturated("10000000000000000000000000000000e-30").value_or(kRefused), 10);
  EXPECT_EQ(parse_resource("cpu", "1E", Overflow::kSaturates).value_or(kRefused), INT64_MAX);
  EXPECT_FALSE(saturated("-100E"));
  EXPECT_FALSE(saturated("many"));
}

TEST(Resources, CpuIsInMilliCoresAndOthersInUnits) {
  EXPECT_EQ(parse_resource("cpu", "1.5").value(), 1500);
  EXPECT_EQ(parse_resource("memory", "1.5").value(), 2);
  EXPECT_EQ(parse_resource("nvidia.com/gpu", "8").value(), 8);
  EXPECT_FALSE(parse_resource("memory", "-1"));
  EXPECT_EQ(parse_resource("cpu", "-0").value(), 0);
}

TEST(Resources, AreFormattedAsUsersWriteThem) {
  EXPECT_EQ(format_resource("cpu", 1500), "1500m");
  EXPECT_EQ(format_resource("cpu", 2000), "2");
  EXPECT_EQ(format_resource("memory", int64_t{64} << 30), "64Gi");
  EXPECT_EQ(format_resource("memory", 1000), "1000");
  EXPECT_EQ(format_resource("nvidia.com/gpu", 1024), "1024");
}

TEST(Quota, OfGpusIsInMillionths) {
  const auto read = [](const char* text) { return parse_quota("nvidia.com/gpu", text).value_or(kRefused); };
  EXPECT_EQ(read("2"), 2'000'000);
  EXPECT_EQ(read("0.25"), 250'000);
  EXPECT_EQ(read("250m"), 250'000);
  EXPECT_EQ(read("0.0000001"), 1) << "rounded up, as all quantities are";
  EXPECT_EQ(read("9223372036854775807"), INT64_MAX) << "more than can be counted";
  EXPECT_EQ(read("-1"), kRefused);
  EXPECT_EQ(read("1e400"), kRefused);
  EXPECT_EQ(format_quota("nvidia.com/gpu", 2'000'000), "2");
  EXPECT_EQ(format_quota("nvidia.com/gpu", 1'250'000), "1250m");
  EXPECT_EQ(format_quota("nvidia.com/gpu", 333'333), "333333u");
  EXPECT_EQ(format_quota("nvidia.com/gpu", 0), "0");
  EXPECT_EQ(format_quota("nvidia.com/gpu", INT64_MAX), "9223372036854775807");
}

TEST(Quota, OfAllElseIsInTheCanonicalUnit) {
  for (const char* name : {"cpu", "memory", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "amd.com/gpu"}) {
    EXPECT_EQ(parse_quota(name, "1500m").value(), parse_resource(name, "1500m").value()) << name;
    EXPECT_EQ(format_quota(name, 1024), format_resource(name, 1024)) << name;
    EXPECT_EQ(to_quota(name, 3), 3) << name;
  }
  EXPECT_EQ(to_quota("nvidia.com/gpu", 3), 3'000'000);
  EXPECT_EQ(to_quota("nvidia.com/gpu", INT64_MAX / 2), INT64_MAX);
}

TEST(Quota, IsOfGpusInMillionthsWhateverItsUnit) {
  EXPECT_EQ(gpu_micros("nvidia.com/gpu", 250'000), 250'000);
  EXPECT_EQ(gpu_micros("nvidia.com/mig-1g.5gb", 2), 2'000'000);
  EXPECT_EQ(gpu_micros("amd.com/gpu", INT64_MAX), INT64_MAX);
  EXPECT_EQ(gpu_micros("cpu", 2000), 0);
}

TEST(Resources, ExtendedOnesHaveAForeignDomain) {
  EXPECT_TRUE(is_extended_resource("nvidia.com/gpu"));
  for (const auto* name :
       {"cpu", "pods", "hugepages-2Mi", "kubernetes.io/x", "a.kubernetes.io/x", "requests.nvidia.com/gpu"})
    EXPECT_FALSE(is_extended_resource(name)) << name;
}

TEST(Resources, AcceleratorsMakeGpuWork) {
  for (const auto* name :
       {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu", "amd.com/cpx_nps4", "gpu.intel.com/xe",
        "habana.ai/gaudi", "google.com/tpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore",
        "aws.amazon.com/neurondevice", "huawei.com/Ascend910", "huawei.com/Ascend310P", "cambricon.com/mlu"})
    EXPECT_TRUE(is_gpu_resource(name)) << name;
  for (const auto* name : {"cpu", "amd.com/other", "nvidia.com/hostdev", "google.com/tpus", "vpc.amazonaws.com/efa",
                           "aws.amazon.com/other", "example.com/huawei.com/Ascend910"})
    EXPECT_FALSE(is_gpu_resource(name)) << name;
}

RC_GTEST_PROP(QuantityProperty, FormattedAmountsReadBackTheSame, ()) {
  const auto amount = *rc::gen::inRange<int64_t>(0, INT64_MAX);
  for (const auto* name : {"memory", "nvidia.com/gpu"}) {
    RC_ASSERT(parse_resource(name, format_resource(name, amount)).value() == amount);
    RC_ASSERT(parse_quota(name, format_quota(name, amount)).value() == amount);
  }
  const int64_t cpu = amount / 1000;
  RC_ASSERT(parse_resource("cpu", format_resource("cpu", cpu)).value() == cpu);
}

RC_GTEST_PROP(QuantityProperty, AnyTextIsReadOrRefused, (const std::string& text)) {
  (void)parse_quantity(text, 3).has_value();
}

}  // namespace
}  // namespace berth::model
