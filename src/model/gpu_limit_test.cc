#include "model/gpu_limit.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

Node node_of(GpuSharing sharing) {
  Node out;
  out.gpus = {.sharing = sharing, .resource = "nvidia.com/gpu"};
  return out;
}

const GpuShare kHalf{.micros = kWholeGpu / 2, .memory_bytes = 0, .problem = ""};

TEST(GpuLimit, OfAShareDependsOnWhatSharesTheDevice) {
  Node replicas = node_of(GpuSharing::kReplicas), devices = node_of(GpuSharing::kDevices);
  EXPECT_EQ(gpu_limit(replicas, kHalf, {}), "not enforced: time-slicing");
  replicas.gpus.mps = true;
  EXPECT_EQ(gpu_limit(replicas, kHalf, {}), "enforced: MPS");
  EXPECT_EQ(gpu_limit(devices, kHalf, {}), "enforced: simulation only");
  devices.devices.keeps_shares = true;
  EXPECT_EQ(gpu_limit(devices, kHalf, {}), "enforced: berth-agent");
  for (const GpuSharing none : {GpuSharing::kNone, GpuSharing::kUnlike, GpuSharing::kInstances})
    EXPECT_EQ(gpu_limit(node_of(none), kHalf, {}), "");
}

TEST(GpuLimit, OfWhatIsRequestedByResource) {
  const ResourceList whole{{"nvidia.com/gpu", 1}}, instance{{"nvidia.com/mig-1g.5gb", 1}}, cpu{{"cpu", 1}};
  EXPECT_EQ(gpu_limit(node_of(GpuSharing::kReplicas), {}, whole), "not enforced: time-slicing");
  EXPECT_EQ(gpu_limit(node_of(GpuSharing::kDevices), {}, whole), "");
  EXPECT_EQ(gpu_limit(node_of(GpuSharing::kInstances), {}, whole), "enforced: MIG");
  Node cut = node_of(GpuSharing::kNone);
  EXPECT_EQ(gpu_limit(cut, {}, instance), "") << "it has none";
  cut.allocatable = instance;
  EXPECT_EQ(gpu_limit(cut, {}, instance), "enforced: MIG");
  cut.gpus.time_sliced = {"nvidia.com/mig-1g.5gb"};
  EXPECT_EQ(gpu_limit(cut, {}, instance), "not enforced: time-slicing");
  Node single = node_of(GpuSharing::kInstances);
  single.gpus.replicas = 2;
  EXPECT_EQ(gpu_limit(single, {}, whole), "not enforced: time-slicing");
  EXPECT_EQ(gpu_limit(node_of(GpuSharing::kReplicas), {}, cpu), "");
}

TEST(DeviceMode, OfAPodDependsOnWhatItAsksForAndOnTheNode) {
  SchedulingSpec cpu, whole, slice, share, claims;
  whole.requests = {{"nvidia.com/gpu", 1}};
  slice.requests = {{"nvidia.com/mig-1g.5gb", 1}};
  share.gpu_share = kHalf;
  claims.resource_claims = true;
  Node counts = node_of(GpuSharing::kReplicas), exact = node_of(GpuSharing::kDevices), agent = exact;
  agent.devices.devices.emplace_back();
  for (const SchedulingSpec& spec : {whole, slice, share}) {
    EXPECT_EQ(device_mode(counts, spec), DeviceMode::kCounts);
    EXPECT_EQ(device_mode(agent, spec), DeviceMode::kAgent);
  }
  EXPECT_EQ(device_mode(exact, whole), DeviceMode::kExact);
  EXPECT_EQ(device_mode(exact, share), DeviceMode::kExact);
  EXPECT_EQ(device_mode(exact, slice), DeviceMode::kCounts) << "of nobody's instances it is known which they are";
  EXPECT_EQ(device_mode(Node(), whole), std::nullopt);
  for (const Node& node : {counts, exact, agent}) {
    EXPECT_EQ(device_mode(node, cpu), std::nullopt);
    EXPECT_NE(device_mode(node), std::nullopt);
    EXPECT_EQ(device_mode(node, claims), DeviceMode::kDra);
  }
}

}  // namespace
}  // namespace berth::model
