#include "bridge/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kGiB = int64_t{1} << 30;

api::Node node_with(const model::ResourceList& resources, model::Labels labels = {}) {
  api::Node node;
  node.capacity = node.allocatable = resources;
  node.metadata.labels = std::move(labels);
  return node;
}

model::GpuShare share_of(const model::Labels& annotations, const model::ResourceList& requests = {}) {
  api::ObjectMeta metadata;
  metadata.annotations = annotations;
  return gpu_share_of(metadata, requests);
}

model::GpuShare part(int64_t micros) { return {.micros = micros, .memory_bytes = 0, .problem = ""}; }
model::GpuShare memory(int64_t bytes) { return {.micros = 0, .memory_bytes = bytes, .problem = ""}; }

TEST(Gpus, WhatKeepsASharedDeviceShared) {
  using Sharing = model::GpuSharing;
  const api::Node plain = node_with({{"nvidia.com/gpu", 4}}, {{"nvidia.com/gpu.memory", "15360"}});
  EXPECT_EQ(gpus_of(plain, DeviceKnowledge::kCounts),
            (model::NodeGpus{Sharing::kNone, "nvidia.com/gpu", 15 * kGiB, 1}));
  EXPECT_EQ(gpus_of(plain, DeviceKnowledge::kExact),
            (model::NodeGpus{Sharing::kDevices, "nvidia.com/gpu", 15 * kGiB, 1}));
  for (const DeviceKnowledge knowledge : {DeviceKnowledge::kCounts, DeviceKnowledge::kExact}) {
    EXPECT_EQ(gpus_of(node_with({{"cpu", 4}}), knowledge), model::NodeGpus{});
    EXPECT_EQ(gpus_of(node_with({{"nvidia.com/gpu", 16}}, {{"nvidia.com/gpu.replicas", "4"}}), knowledge),
              (model::NodeGpus{Sharing::kReplicas, "nvidia.com/gpu", 0, 4}));
    EXPECT_EQ(gpus_of(node_with({{"nvidia.com/gpu.shared", 20}}, {{"nvidia.com/gpu.count", "2"}}), knowledge),
              (model::NodeGpus{Sharing::kReplicas, "nvidia.com/gpu.shared", 0, 10}));
  }
}

TEST(Gpus, LabelsThatMakeNoSenseAreNone) {
  const auto memory_of = [](const char* text) {
    return gpus_of(node_with({{"nvidia.com/gpu", 1}}, {{"nvidia.com/gpu.memory", text}}), DeviceKnowledge::kExact)
        .memory_bytes;
  };
  for (const char* text : {"", "lots", "-1", "1e4", "16Gi", "99999999999999999999", "9223372036854775807", "8388609"})
    EXPECT_EQ(memory_of(text), 0) << text;
  EXPECT_EQ(memory_of("8388608"), model::kGpuMemoryMax);
  for (const char* text : {"0", "-4", "many"})
    EXPECT_EQ(gpus_of(node_with({{"nvidia.com/gpu", 1}}, {{"nvidia.com/gpu.replicas", text}}), DeviceKnowledge::kCounts)
                  .replicas,
              1);
}

TEST(Gpus, SharesAreExactOnEveryDevice) {
  const model::NodeGpus t4{model::GpuSharing::kDevices, "nvidia.com/gpu", 15 * kGiB, 4};
  EXPECT_EQ(3 * t4.units_of(memory(5 * kGiB)), t4.units());
  EXPECT_GT(3 * t4.units_of(memory(5 * kGiB + 1)), t4.units());
  EXPECT_EQ(t4.units_of(part(model::kWholeGpu)), t4.units());
  EXPECT_GT(t4.units_of(memory(INT64_MAX)), t4.units());
  EXPECT_EQ(t4.replicas_of(part(250'000)), 1);
  EXPECT_EQ(t4.replicas_of(part(250'001)), 2);
  EXPECT_EQ(t4.replicas_of(memory(15 * kGiB)), 4);
  const model::NodeGpus unknown{model::GpuSharing::kDevices, "nvidia.com/gpu", 0, 1};
  EXPECT_EQ(unknown.units_of(memory(1)), 0);
  EXPECT_EQ(2 * unknown.units_of(part(500'000)), unknown.units());
  const model::NodeGpus largest{model::GpuSharing::kDevices, "nvidia.com/gpu", model::kGpuMemoryMax, 1000};
  EXPECT_GT(largest.units_of(memory(INT64_MAX)), largest.units());
  EXPECT_EQ(largest.replicas_of(part(model::kWholeGpu)), 1000);
}

TEST(Gpus, AnnotationsAskForShares) {
  EXPECT_FALSE(share_of({}).asked());
  EXPECT_EQ(share_of({{"berth.dev/gpu-fraction", "0.5"}}).micros, 500'000);
  EXPECT_EQ(share_of({{"berth.dev/gpu-fraction", "1"}}).micros, model::kWholeGpu);
  EXPECT_EQ(share_of({{"berth.dev/gpu-fraction", "0.3333333"}}).micros, 333'334);
  EXPECT_EQ(share_of({{"berth.dev/gpu-memory", "10Gi"}}).memory_bytes, 10 * kGiB);
  EXPECT_EQ(share_of({{"gpu-memory", "2048"}}).memory_bytes, 2 * kGiB);
  EXPECT_EQ(share_of({{"gpu-fraction", "0.25"}, {"berth.dev/gpu-fraction", "0.5"}}).micros, 500'000);
  EXPECT_EQ(share_of({{"berth.dev/gpu-fraction", "0.5"}}, {{"nvidia.com/gpu.shared", 1}}).micros, 500'000);
  EXPECT_EQ(share_of({{"berth.dev/gpu-fraction", "0.5"}}, {{"nvidia.com/gpu", 0}}).micros, 500'000);
}

TEST(Gpus, AShareThatMakesNoSenseServesNobody) {
  for (const char* text : {"0", "1.5", "-0.5", "half", "", "500m", "0.0000001x", "1e-1", "50%", "0.5.5", "."}) {
    const model::GpuShare share = share_of({{"berth.dev/gpu-fraction", text}});
    EXPECT_THAT(share.problem, HasSubstr("is no part of a GPU; write a number above 0")) << text;
    EXPECT_TRUE(share.asked() && share.micros == 0 && share.memory_bytes == 0) << text;
  }
  for (const char* text : {"0", "-1Gi", "lots", "", "99999999999999999999999"})
    EXPECT_THAT(share_of({{"berth.dev/gpu-memory", text}}).problem, HasSubstr("is no amount of memory")) << text;
  EXPECT_THAT(share_of({{"gpu-memory", "4Gi"}}).problem, HasSubstr("MiB as a whole number"));
  EXPECT_THAT(share_of({{"gpu-fraction", "0.5"}, {"gpu-fraction-num-devices", "2"}}).problem, HasSubstr("single GPU"));
  EXPECT_THAT(share_of({{"gpu-fraction", "0.5"}, {"gpu-memory", "100"}}).problem, HasSubstr("exclude each other"));
  for (const char* resource : {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu"})
    EXPECT_THAT(share_of({{"berth.dev/gpu-fraction", "0.5"}}, {{resource, 1}}).problem, HasSubstr(resource));
}

TEST(Gpus, DevicesAreNumbersOrUuids) {
  const auto devices = [](const char* text) {
    api::ObjectMeta metadata;
    metadata.annotations.set("berth.dev/gpu-devices", text);
    return gpu_devices_of(metadata);
  };
  EXPECT_THAT(devices("0"), ElementsAre("0"));
  EXPECT_THAT(devices("1023,7"), ElementsAre("1023", "7"));
  EXPECT_THAT(devices("GPU-5fd4,GPU-92ab"), ElementsAre("GPU-5fd4", "GPU-92ab"));
  for (const char* text : {"", "-1", "1024", "0,,1", "0,0", "0, 1", "GPU-a,", "99999999999999999999"})
    EXPECT_THAT(devices(text), IsEmpty()) << text;
}

TEST(Gpus, InstancesThatAreAdvertisedAsSharedAreTimeSliced) {
  const auto gpus = [](const char* resource, const char* replicas) {
    return gpus_of(node_with({{resource, 14}, {"nvidia.com/gpu", 1}}, {{"nvidia.com/mig-1g.5gb.replicas", replicas}}),
                   DeviceKnowledge::kCounts)
        .time_sliced;
  };
  EXPECT_THAT(gpus("nvidia.com/mig-1g.5gb.shared", "2"), testing::ElementsAre("nvidia.com/mig-1g.5gb.shared"));
  EXPECT_THAT(gpus("nvidia.com/mig-1g.5gb", "2"), testing::ElementsAre("nvidia.com/mig-1g.5gb"));
  EXPECT_THAT(gpus("nvidia.com/mig-1g.5gb", "1"), testing::IsEmpty());
}

TEST(Gpus, DevicesAreToldByUuidWhereTheyHaveOne) {
  EXPECT_EQ(gpu_devices_text({}), "");
  EXPECT_EQ(gpu_devices_text({.numbers = {0, 3}}), "0,3");
  EXPECT_EQ(gpu_devices_text({.numbers = {0, 3}, .uuids = {"GPU-a", "GPU-b"}, .link = "NVLink"}), "GPU-a,GPU-b");
  EXPECT_EQ(with_gpus_text({}), "");
  EXPECT_EQ(with_gpus_text({.numbers = {3}, .uuids = {"GPU-b"}}), " with GPU 3");
  EXPECT_EQ(with_gpus_text({.numbers = {0, 3}, .link = "NVLink"}), " with GPUs 0,3 (NVLink)");
  EXPECT_EQ(with_gpus_text({.numbers = {3}, .limit = "enforced: berth-agent"}),
            " with GPU 3; GPU limit enforced: berth-agent");
  EXPECT_EQ(with_gpus_text({.limit = "not enforced: time-slicing"}), "; GPU limit not enforced: time-slicing");
}

}  // namespace
}  // namespace berth::bridge
