#include "model/taint.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

using Effect = TaintEffect;
using Op = TolerationOperator;

struct TolerationCase {
  Toleration toleration;
  Taint taint;
  bool tolerates;
};
void PrintTo(const TolerationCase& one, std::ostream* out) {
  *out << one.toleration.key << "=" << one.toleration.value << " of " << to_string(one.taint);
}

class Tolerations : public ::testing::TestWithParam<TolerationCase> {};

TEST_P(Tolerations, TolerateAsInKubernetes) {
  EXPECT_EQ(GetParam().toleration.tolerates(GetParam().taint), GetParam().tolerates);
}

const Taint kTaint{"gpu", "a100", Effect::kNoSchedule};

INSTANTIATE_TEST_SUITE_P(
    Table, Tolerations,
    ::testing::Values(TolerationCase{{"gpu", "a100", Op::kEqual, true, {}}, kTaint, true},
                      TolerationCase{{"gpu", "a100", Op::kEqual, false, Effect::kNoSchedule}, kTaint, true},
                      TolerationCase{{"gpu", "a100", Op::kEqual, false, Effect::kNoExecute}, kTaint, false},
                      TolerationCase{{"gpu", "t4", Op::kEqual, true, {}}, kTaint, false},
                      TolerationCase{{"gpu", "", Op::kExists, true, {}}, kTaint, true},
                      TolerationCase{{"cpu", "", Op::kExists, true, {}}, kTaint, false},
                      TolerationCase{{"", "", Op::kExists, true, {}}, kTaint, true},
                      TolerationCase{{"", "", Op::kExists, false, Effect::kNoExecute}, kTaint, false},
                      TolerationCase{{"m", "10", Op::kGt, true, {}}, {"m", "20", Effect::kNoSchedule}, true},
                      TolerationCase{{"m", "10", Op::kGt, true, {}}, {"m", "10", Effect::kNoSchedule}, false},
                      TolerationCase{{"m", "10", Op::kLt, true, {}}, {"m", "9", Effect::kNoSchedule}, true},
                      TolerationCase{{"m", "10", Op::kLt, true, {}}, {"m", "x", Effect::kNoSchedule}, false}));

TEST(Taints, AnyOneTolerationIsEnough) {
  EXPECT_TRUE(tolerates({{"x", "", Op::kExists, true, {}}, {"gpu", "", Op::kExists, true, {}}}, kTaint));
  EXPECT_FALSE(tolerates({}, kTaint));
}

TEST(Taints, AreWrittenAsKubectlWritesThem) {
  EXPECT_EQ(to_string(kTaint), "gpu=a100:NoSchedule");
  EXPECT_EQ(to_string(Taint{"gpu", "", Effect::kPreferNoSchedule}), "gpu:PreferNoSchedule");
}

}  // namespace
}  // namespace berth::model
