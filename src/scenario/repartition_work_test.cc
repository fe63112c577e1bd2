// Repartitioner::step() within a bound of work: it goes on where it stopped, and comes to the same.
#include <gtest/gtest.h>

#include "engine/testing.h"
#include "mig/repartitioner.h"
#include "model/mig.h"
#include "policy/registry.h"

namespace berth::scenario {
namespace {

using namespace engine;
using namespace engine::testing;
using mig::RepartitionStep;

constexpr int kNodes = 20, kPods = 60;

model::Node dynamic_node(const std::string& name) {
  model::Node node = make_node(name, {{"nvidia.com/gpu", 2}});
  node.mig = {model::read_gpu_product("NVIDIA-A100-SXM4-40GB").model, 2, model::MigHand::kLayouts};
  return node;
}

// Sixty pods that wait for a third of a node each.
std::unique_ptr<Driver> waiting_pods() {
  auto driver = std::make_unique<Driver>(policy::default_policies());
  for (int n = 0; n < kNodes; ++n) driver->add(dynamic_node("n" + std::to_string(10 + n)));
  for (int p = 0; p < kPods; ++p)
    driver->add(with_spec(make_pod("p" + std::to_string(p)),
                          [](auto& spec) { spec.requests.set("nvidia.com/mig-1g.5gb", 4); }));
  driver->cycle();
  return driver;
}

std::vector<RepartitionStep> all_steps(Driver& driver, int64_t work, int& calls) {
  mig::Repartitioner repartitioner;
  std::vector<RepartitionStep> out;
  for (calls = 0; calls < 1000; ++calls) {
    std::vector<RepartitionStep> steps = repartitioner.step(driver.engine(), Time{}, work);
    for (RepartitionStep& step : steps) {
      if (step.kind == RepartitionStep::Kind::kKeep) {
        driver.apply(GpusKept{step.node, step.owner, step.resources});
        continue;
      }
      driver.apply(NodeRepartitioning{step.node, true});
      out.push_back(std::move(step));
    }
    if (!repartitioner.unfinished()) break;
    driver.cycle();
  }
  return out;
}

TEST(RepartitionWork, IsBoundedAndGoesOnWhereItStopped) {
  int calls = 0;
  const auto at_once = all_steps(*waiting_pods(), INT64_MAX, calls);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(at_once.size(), static_cast<size_t>(kNodes));
  const auto bit_by_bit = all_steps(*waiting_pods(), 1, calls);
  EXPECT_GT(calls, kNodes / 2) << "each call plans a node, even where there is hardly any work to be done";
  ASSERT_EQ(bit_by_bit.size(), at_once.size());
  for (size_t i = 0; i < at_once.size(); ++i) {
    EXPECT_EQ(bit_by_bit[i].node, at_once[i].node);
    EXPECT_EQ(bit_by_bit[i].kind, RepartitionStep::Kind::kBegin);
  }
}

TEST(RepartitionWork, IsNoneWhereNothingHasChanged) {
  const auto driver = waiting_pods();
  driver->add(with_spec(make_pod("never"), [](auto& spec) { spec.requests.set("nvidia.com/mig-7g.40gb", 3); }));
  driver->cycle();
  mig::Repartitioner repartitioner;
  for (const RepartitionStep& step : repartitioner.step(driver->engine(), Time{}))
    driver->apply(NodeRepartitioning{step.node, true});
  EXPECT_GT(repartitioner.work_used(), 0);
  repartitioner.step(driver->engine(), Time{});
  EXPECT_GT(repartitioner.work_used(), 0) << "nodes are under way now";
  repartitioner.step(driver->engine(), Time{});
  EXPECT_EQ(repartitioner.work_used(), 0);
}

TEST(RepartitionWork, CountsOnANodeThatIsBeingCutWhateverItSaysMeanwhile) {
  Driver driver(policy::default_policies());
  model::Node first = dynamic_node("a"), second = dynamic_node("b");
  driver.add(first);
  driver.add(second);
  driver.add(with_spec(make_pod("p"), [](auto& spec) { spec.requests.set("nvidia.com/mig-1g.5gb", 4); }));
  driver.cycle();
  mig::Repartitioner repartitioner;
  const auto steps = repartitioner.step(driver.engine(), Time{});
  ASSERT_EQ(steps.size(), 2U);
  ASSERT_EQ(steps[0].node, "a");
  driver.apply(NodeRepartitioning{"a", true});
  EXPECT_EQ(steps[1].kind, RepartitionStep::Kind::kKeep) << "of what is asked for beside the GPUs";
  driver.apply(GpusKept{"a", steps[1].owner, steps[1].resources});
  first.mig = {};  // its device plugin is away
  first.allocatable.set("nvidia.com/gpu", 0);
  driver.apply(NodeUpserted{first});
  driver.cycle();
  EXPECT_TRUE(repartitioner.step(driver.engine(), Time{}).empty()) << "the pod is to have its slices there";
}

TEST(RepartitionWork, WhatIsKeptForAPodIsNotWhatItLacks) {
  Driver driver(policy::default_policies());
  model::Node node = dynamic_node("a");
  node.allocatable.set("cpu", 8000);
  driver.add(node);
  const auto asks = [](auto& spec) {
    spec.requests.set("cpu", 8000);
    spec.requests.set("nvidia.com/mig-7g.40gb", 1);
  };
  driver.add(with_spec(make_pod("waits"), asks));
  driver.add(with_spec(make_pod("other"), asks));
  driver.cycle();
  const std::string lacks_slices = "0/1 nodes are available: 1 Insufficient nvidia.com/mig-7g.40gb.";
  ASSERT_TRUE(driver.told("uid-waits").back().starts_with(lacks_slices)) << driver.told("uid-waits").back();
  model::ResourceList kept;
  kept.set("cpu", 8000);
  kept.set("nvidia.com/gpu", 2);
  driver.apply(GpusKept{"a", "uid-waits", kept});
  driver.cycle(Duration::seconds(60));
  const std::string of_owner = driver.told("uid-waits").back();
  EXPECT_TRUE(of_owner.starts_with(lacks_slices)) << of_owner;
  EXPECT_TRUE(of_owner.ends_with("what becomes free on node a is kept for it, to be cut anew when it is idle."))
      << of_owner;
  EXPECT_TRUE(driver.told("uid-other").back().find("1 Insufficient cpu") != std::string::npos);
  driver.apply(GpusKept{"a", "uid-waits", {}});
  driver.cycle(Duration::seconds(60));
  EXPECT_TRUE(driver.told("uid-waits").back().starts_with(lacks_slices));
  EXPECT_EQ(driver.told("uid-waits").back(), driver.told("uid-other").back());
}

}  // namespace
}  // namespace berth::scenario
