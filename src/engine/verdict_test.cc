// Small parts of a verdict: failure sets and their message, compiled classes, the waits of refused owners.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/failure_sets.h"
#include "engine/pod_class.h"
#include "engine/rejections.h"
#include "engine/testing.h"

namespace berth::engine::testing {
namespace {

using ::testing::ElementsAre;

constexpr ReasonInfo kTaint{.text = "node(s) had untolerated taint(s)"};
constexpr ReasonInfo kShortOf{.text = "Insufficient", .names_resource = true};

TEST(FailureSets, TheSameReasonsAreOneSet) {
  ResourceTable resources;
  FailureSets sets;
  EXPECT_EQ(sets.intern({}, resources), kFits);
  const auto cpu = sets.intern({{&kShortOf, kCpu, 0}}, resources);
  EXPECT_EQ(sets.intern({{&kShortOf, kCpu, 9}}, resources), cpu);  // the filter's own index does not matter
  EXPECT_NE(sets.intern({{&kShortOf, kMemory, 0}}, resources), cpu);
  EXPECT_EQ(sets.intern({{&kTaint, {}, 1}}, resources), sets.intern({{&kTaint, {}, 2}}, resources));
  EXPECT_THAT(sets.texts(cpu), ElementsAre("Insufficient cpu"));
}

TEST(FailureSets, TheMessageSortsItsPartsAsStrings) {
  ResourceTable resources;
  FailureSets sets;
  FailureCounts counts;
  counts.add(sets.intern({{&kTaint, {}, 0}}, resources), 2);
  counts.add(sets.intern({{&kShortOf, kCpu, 0}, {&kShortOf, kMemory, 0}}, resources), 3);
  counts.add(sets.intern({{&kShortOf, kMemory, 0}}, resources), 7);
  EXPECT_EQ(fit_message(counts, sets),
            "0/12 nodes are available: 10 Insufficient memory, 2 node(s) had untolerated "
            "taint(s), 3 Insufficient cpu.");
}

TEST(PodClass, LeavesOutWhatIsNotRequestedAndClamps) {
  ResourceTable resources;
  const PodClass cls =
      compile_class(make_pod("p", {{"cpu", 0}, {"memory", INT64_MAX}, {"x.com/y", -3}}).spec, resources);
  ASSERT_EQ(cls.requests.size(), 2U);
  EXPECT_EQ(cls.requests[0].id, kMemory);
  EXPECT_EQ(cls.requests[0].amount, kMaxAmount);
  EXPECT_EQ(cls.requests[1].id, kPods);
  EXPECT_EQ(cls.scored_cpu_millis, 100);
}

TEST(PodClass, GpuPodsPackAndOthersSpreadUnlessToldOtherwise) {
  ResourceTable resources;
  const auto packs = [&](const model::ResourceList& requests, model::Placement wish) {
    return compile_class(with_spec(make_pod("p", requests), [&](auto& s) { s.placement = wish; }).spec, resources)
        .packs;
  };
  EXPECT_TRUE(packs({{"nvidia.com/gpu", 1}}, model::Placement::kDefault));
  EXPECT_TRUE(packs({{"nvidia.com/mig-1g.5gb", 1}}, model::Placement::kDefault));
  EXPECT_FALSE(packs({{"nvidia.com/gpu", 1}}, model::Placement::kSpread));
  EXPECT_FALSE(packs({}, model::Placement::kDefault));
  EXPECT_TRUE(packs({}, model::Placement::kPack));
}

TEST(PodClass, NodeNamesAreKnownOnlyWhenEveryTermNamesThem) {
  using Op = model::NodeSelectorOperator;
  ResourceTable resources;
  const model::NodeSelectorTerm ab{{}, {{"metadata.name", Op::kIn, {"b", "a"}}}};
  const model::NodeSelectorTerm bc{{}, {{"metadata.name", Op::kIn, {"b", "c"}}, {"metadata.name", Op::kIn, {"c"}}}};
  const model::NodeSelectorTerm open{{{"zone", Op::kExists, {}}}, {{"metadata.name", Op::kNotIn, {"a"}}}};
  const auto compiled = [&](std::vector<model::NodeSelectorTerm> terms) {
    return compile_class(with_spec(make_pod("p"), [&](auto& s) { s.affinity.required = terms; }).spec, resources);
  };
  EXPECT_THAT(compiled({ab, bc}).required_node_names, ElementsAre("a", "b", "c"));
  EXPECT_TRUE(compiled({ab}).restricts_node_names);
  EXPECT_FALSE(compiled({ab, open}).restricts_node_names);
}

TEST(Rejections, WaitsDoubleUpToTheCapAndAreForgotten) {
  Rejections rejections;
  const auto second = Duration::seconds(1), cap = Duration::seconds(5);
  Time now{0};
  for (const int64_t wait : {1, 2, 4, 5, 5}) {
    rejections.record("job", now, second, cap);
    EXPECT_EQ(rejections.until("job"), now + Duration::seconds(wait));
    now = now + Duration::seconds(10);
  }
  now = now + Duration::seconds(601);
  rejections.record("job", now, second, cap);
  EXPECT_EQ(rejections.until("job"), now + second);
}

TEST(Rejections, BarePodsLeaveNoTrace) {
  Rejections rejections;
  rejections.record("", Time{5}, Duration::seconds(1), Duration::seconds(5));
  EXPECT_LT(rejections.until(""), Time{0});
  EXPECT_LT(rejections.until("other"), Time{0});
}

TEST(ResourceTable, KnowsGpusByName) {
  ResourceTable resources;
  EXPECT_EQ(resources.intern("pods"), kPods);
  EXPECT_TRUE(resources.is_gpu(resources.intern("nvidia.com/gpu")));
  EXPECT_FALSE(resources.is_gpu(resources.intern("example.com/fpga")));
}

}  // namespace
}  // namespace berth::engine::testing
