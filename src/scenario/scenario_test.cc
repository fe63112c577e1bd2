#include "scenario/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::scenario {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kShapes =
    "{apiVersion: v1, kind: Node, metadata: {name: cpu-4}, status: {capacity: {cpu: 4, memory: 8Gi, pods: 10}}}\n";

constexpr const char* kText =
    "cluster: {nodes: [{like: cpu-4, name: n1}]}\n"
    "steps:\n"
    "  - submit: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}\n"
    "  - expect: {running: 2, placements: {a: n2}}\n";

std::vector<Mismatch> run(const std::string& text) {
  const auto scenario = parse_scenario(text, "s.yaml");
  const auto shapes = parse_shapes(kShapes, "shapes.yaml");
  EXPECT_TRUE(scenario && shapes);
  return run_scenario(*scenario, *shapes);
}

TEST(Scenario, AMismatchNamesItsLineAndBothValues) {
  const auto mismatches = run(kText);
  ASSERT_EQ(mismatches.size(), 2u);
  EXPECT_EQ(mismatches[0].line, 4);
  EXPECT_EQ(mismatches[0].sentence, "running: expected 2, but it is 1: [a]");
  EXPECT_EQ(mismatches[1].sentence, "placement of a: expected n2, but it is n1");
}

TEST(Scenario, UpdatingMakesItHold) {
  size_t left = 0;
  const std::string updated = with_actual_values(kText, run(kText), left);
  EXPECT_EQ(left, 0u);
  EXPECT_THAT(updated, HasSubstr("{running: 1, placements: {a: n1}}"));
  EXPECT_THAT(run(updated), IsEmpty());
}

TEST(Scenario, UpdatingLeavesWhatStandsTwiceOnALine) {
  size_t left = 0;
  const std::string text = "  - expect: {running: 2, pending: 2}\n";
  EXPECT_EQ(with_actual_values(text, {{1, "", "2", "1"}}, left), text);
  EXPECT_EQ(left, 1u);
}

TEST(Scenario, UpdatingQuotesWhatYamlWouldReadOtherwise) {
  size_t left = 0;
  EXPECT_EQ(with_actual_values("{reasons: {a: none}}", {{1, "", "none", "1 node: \"small\""}}, left),
            R"({reasons: {a: "1 node: \"small\""}})");
  EXPECT_EQ(with_actual_values("{running: [a]}", {{1, "", "[a]", "[b: c]"}}, left), "{running: [b: c]}");
  EXPECT_EQ(with_actual_values("{reasons: {a: \"no\"}}", {{1, "", "no", "x: y"}}, left), "{reasons: {a: \"x: y\"}}");
}

TEST(Scenario, ManifestsReportTheScenariosLines) {
  const auto mismatches =
      run("steps:\n  - submit:\n      {apiVersion: v1, kind: Pod, metadata: {name: a},\n       spec: {nodeselector: "
          "{}, containers: [{name: c, image: i}]}}\n");
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_THAT(mismatches[0].sentence, HasSubstr("s.yaml:4: spec.nodeselector"));
}

TEST(Scenario, AnUnknownStepIsAMismatch) {
  EXPECT_THAT(run("steps: [{explode: now}]\n").at(0).sentence, HasSubstr("no step is called 'explode'"));
}

}  // namespace
}  // namespace berth::scenario
