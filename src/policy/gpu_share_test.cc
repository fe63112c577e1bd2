// What a pod that asks for half a GPU is told, by what a node's GPUs are.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/testing.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;
using model::GpuSharing;

constexpr const char* kGpu = "nvidia.com/gpu";

// The first reason of all filters against the pod on the only node; "" where it fits.
std::string verdict(const model::NodeGpus& gpus, int64_t count, const model::GpuShare& share) {
  State state;
  model::Node node = make_node("n", {{kGpu, count}});
  node.gpus = gpus;
  const NodeSlot slot = state.upsert_node(node);
  const PodSlot pod = state.add_pod(with_spec(make_pod("p"), [&](auto& spec) { spec.gpu_share = share; }));
  Reasons reasons;
  run_filters(default_policies(), state.pod_class(state.pod(pod).cls), state.view(slot), reasons);
  return reasons.empty() ? "" : std::string(reasons.front().info->text);
}

TEST(GpuShare, EachKindOfNodeHasItsVerdict) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  model::GpuShare half, memory;
  half.micros = 500'000;
  memory.memory_bytes = 20 * kGiB;
  EXPECT_EQ(verdict({GpuSharing::kNone, kGpu, 16 * kGiB, 1}, 4, half), "node(s) needed berth-agent to share a GPU");
  EXPECT_EQ(verdict({GpuSharing::kDevices, kGpu, 16 * kGiB, 1}, 4, half), "");
  EXPECT_EQ(verdict({GpuSharing::kReplicas, kGpu, 16 * kGiB, 4}, 16, half), "");
  EXPECT_EQ(verdict({GpuSharing::kReplicas, kGpu, 16 * kGiB, 0}, 16, half),
            "node(s) didn't tell how often they advertise a GPU (nvidia.com/gpu.replicas)");
  EXPECT_EQ(verdict({GpuSharing::kInstances, kGpu, 16 * kGiB, 1}, 4, half),
            "node(s) had MIG instances in the place of GPUs, of which none is shared");
  EXPECT_EQ(verdict({GpuSharing::kUnlike, kGpu, 16 * kGiB, 1}, 4, half), "node(s) had GPUs of different memory");
  EXPECT_EQ(verdict({GpuSharing::kDevices, kGpu, 0, 1}, 4, memory),
            "node(s) didn't tell the memory of their GPUs (nvidia.com/gpu.memory)");
  EXPECT_EQ(verdict({GpuSharing::kDevices, kGpu, 16 * kGiB, 1}, 4, memory), "node(s) had GPUs with too little memory");
  EXPECT_EQ(verdict({GpuSharing::kDevices, kGpu, 16 * kGiB, 1}, 0, half), "node(s) had no GPU to share");
}

}  // namespace
}  // namespace berth::policy
