#include "model/node_affinity.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

using Op = NodeSelectorOperator;

struct RequirementCase {
  Op op;
  std::vector<std::string> values;
  const char* label;  // null: the node lacks it
  bool matches;
};
void PrintTo(const RequirementCase& one, std::ostream* out) {
  *out << to_string(NodeSelectorRequirement{"key", one.op, one.values}) << " of "
       << (one.label == nullptr ? "no label" : one.label);
}

class Requirements : public ::testing::TestWithParam<RequirementCase> {};

TEST_P(Requirements, MatchAsInKubernetes) {
  const NodeSelectorRequirement requirement{"k", GetParam().op, GetParam().values};
  const std::string label = GetParam().label == nullptr ? "" : GetParam().label;
  EXPECT_EQ(requirement.matches(GetParam().label == nullptr ? nullptr : &label), GetParam().matches);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Requirements,
    ::testing::Values(RequirementCase{Op::kIn, {"a", "b"}, "b", true}, RequirementCase{Op::kIn, {"a"}, "c", false},
                      RequirementCase{Op::kIn, {"a"}, nullptr, false}, RequirementCase{Op::kNotIn, {"a"}, "a", false},
                      RequirementCase{Op::kNotIn, {"a"}, "b", true}, RequirementCase{Op::kNotIn, {"a"}, nullptr, true},
                      RequirementCase{Op::kExists, {}, "", true}, RequirementCase{Op::kExists, {}, nullptr, false},
                      RequirementCase{Op::kDoesNotExist, {}, nullptr, true},
                      RequirementCase{Op::kDoesNotExist, {}, "x", false}, RequirementCase{Op::kGt, {"40"}, "80", true},
                      RequirementCase{Op::kGt, {"80"}, "80", false}, RequirementCase{Op::kGt, {"40"}, "9", false},
                      RequirementCase{Op::kGt, {"-1"}, "0", true}, RequirementCase{Op::kLt, {"80"}, "40", true},
                      RequirementCase{Op::kLt, {"80"}, "big", false}, RequirementCase{Op::kLt, {"big"}, "40", false},
                      RequirementCase{Op::kLt, {"80"}, nullptr, false},
                      RequirementCase{Op::kGt, {"1", "2"}, "3", false},
                      RequirementCase{Op::kGt, {"1"}, "99999999999999999999", false},
                      RequirementCase{Op::kGt, {"1"}, "2.5", false}));

TEST(Terms, NeedAllOfTheirRequirementsAndAtLeastOne) {
  const NodeSelectorTerm term{{{"a", Op::kExists, {}}}, {{"metadata.name", Op::kIn, {"n1"}}}};
  EXPECT_TRUE(term.matches({{"a", "x"}}, "n1"));
  EXPECT_FALSE(term.matches({{"a", "x"}}, "n2"));
  EXPECT_FALSE(term.matches({}, "n1"));
  EXPECT_FALSE(NodeSelectorTerm{}.matches({{"a", "x"}}, "n1"));
}

TEST(Requirements, AreWrittenForPeople) {
  EXPECT_EQ(to_string(NodeSelectorRequirement{"gpu", Op::kIn, {"a", "b"}}), "gpu In [a b]");
  EXPECT_EQ(to_string(NodeSelectorRequirement{"gpu", Op::kExists, {}}), "gpu Exists");
}

}  // namespace
}  // namespace berth::model
