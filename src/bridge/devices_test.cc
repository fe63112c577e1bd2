#include "bridge/devices.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bridge/to_model.h"

namespace berth::bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

std::string with(const std::string& devices) { return fmt::format(R"({{"version":"v1","devices":[{}]}})", devices); }
std::string problem_of(const std::string& json) {
  const auto devices = read_devices(json);
  return devices ? "" : devices.error().message;
}
int64_t whole(const std::string& devices, int64_t allocatable) {
  return whole_device_count(read_devices(with(devices)).value(), allocatable).value_or(-1);
}

TEST(Devices, ReadsWhatTheAgentSays) {
  const auto read = read_devices(with(
      R"({"uuid":"GPU-a","model":"NVIDIA-H100-80GB-HBM3","memoryMiB":81559,"numaNode":1,
          "pcie":{"root":"0000:15","switch":"0000:16:00.0"},"nvlinks":{"GPU-b":18},"pods":["default/train-0"]},
         {"uuid":"GPU-b","nvlinks":{"GPU-a":18},"health":{"healthy":false,"reason":"XID 79"},
          "mig":{"enabled":true,"instances":[{"uuid":"MIG-x","profile":"3g.40gb","start":4,"pods":["default/b"]}]}})"));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_THAT(read->devices, SizeIs(2));
  const model::GpuDevice &a = read->devices[0], &b = read->devices[1];
  EXPECT_EQ(a.uuid, "GPU-a");
  EXPECT_EQ(a.model, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(a.memory_bytes, int64_t{81559} << 20);
  EXPECT_EQ(a.numa_node, 1);
  EXPECT_EQ(a.pcie_root, "0000:15");
  EXPECT_EQ(a.pcie_switch, "0000:16:00.0");
  EXPECT_THAT(a.nvlinks, ElementsAre(Pair(1U, 18)));
  EXPECT_THAT(a.pods, ElementsAre("default/train-0"));
  EXPECT_EQ(a.unhealthy, "");
  EXPECT_EQ(b.unhealthy, "XID 79");
  EXPECT_TRUE(b.mig_enabled);
  EXPECT_THAT(b.mig_instances, ElementsAre(model::MigDeviceInstance{"MIG-x", "3g.40gb", 4, {"default/b"}}));
  EXPECT_EQ(read_devices(devices_json(*read)).value(), *read) << "as it is written";
}

TEST(Devices, AreNeverMoreThanBothSayWhileTheNodeIsBeingCut) {
  api::Node node;
  node.metadata.annotations.set("berth.dev/devices", with(R"({"uuid":"a"},{"uuid":"b","mig":{"enabled":true}})"));
  node.allocatable.set(kGpuResource, 2);
  EXPECT_FALSE(devices_of(node)) << "one of both is out of date";
  node.metadata.annotations.set("berth.dev/mig-desired", R"({"version":"v1","state":"wanted"})");
  EXPECT_EQ(devices_of(node).value()->allocatable.get(kGpuResource), 1);
  node.metadata.annotations.set("berth.dev/mig-desired", R"({"version":"v1","state":"arrived"})");
  EXPECT_FALSE(devices_of(node));
}

TEST(Devices, WhatIsNotToldIsNotKnown) {
  const auto read = read_devices(with(R"({"uuid":"GPU-a"})"));
  ASSERT_TRUE(read) << read.error().message;
  model::GpuDevice bare;
  bare.uuid = "GPU-a";
  EXPECT_THAT(read->devices, ElementsAre(bare));
  EXPECT_THAT(read_devices(with("")).value().devices, IsEmpty());
}

TEST(Devices, FieldsOfANewerAgentPass) {
  EXPECT_EQ(problem_of(R"({"version":"v1","madeBy":"agent","devices":[{"uuid":"GPU-a","colour":"green"}]})"), "");
}

TEST(Devices, AnUnhealthyDeviceHasAReasonEvenIfNoneWasGiven) {
  EXPECT_EQ(read_devices(with(R"({"uuid":"GPU-a","health":{"healthy":false}})")).value().devices[0].unhealthy,
            "no reason given");
}

TEST(Devices, WhatContradictsItselfIsRefused) {
  EXPECT_NE(problem_of("{"), "");
  EXPECT_NE(problem_of("[]"), "");
  EXPECT_THAT(problem_of("{}"), HasSubstr("version: '' is not v1"));
  EXPECT_THAT(problem_of(R"({"version":"v2","devices":[]})"), HasSubstr("version: 'v2' is not v1"));
  EXPECT_THAT(problem_of(with(R"({"model":"x"})")), HasSubstr("a device has no uuid"));
  EXPECT_THAT(problem_of(with(R"({"uuid":"a"},{"uuid":"a"})")), HasSubstr("a stands there twice"));
  EXPECT_THAT(
      problem_of(with(
          R"({"uuid":"a","mig":{"enabled":true,"instances":[{"uuid":"i","profile":"1g.5gb","start":0},{"uuid":"i","profile":"1g.5gb","start":1}]}})")),
      HasSubstr("MIG instance i of a stands there twice"));
  EXPECT_THAT(problem_of(with(R"({"uuid":"a","mig":{"enabled":true,"instances":[{"profile":"1g.5gb"}]}})")),
              HasSubstr("devices[0].mig.instances[0]: does not say at which memory slice it starts: start is missing"));
  EXPECT_THAT(problem_of(with(R"({"uuid":7})")), HasSubstr("devices[0].uuid"));
  EXPECT_THAT(problem_of(with(R"({"uuid":"a","memoryMiB":-1})")), HasSubstr("devices[0].memoryMiB: -1 is outside"));
  EXPECT_THAT(problem_of(with(R"({"uuid":"a","nvlinks":{"b":19}},{"uuid":"b"})")), HasSubstr("19 is outside 1 to 18"));
  EXPECT_THAT(problem_of(with(R"({"uuid":"a","nvlinks":{"b":1}})")), HasSubstr("b, which is no other device"));
  EXPECT_THAT(problem_of(with(R"({"uuid":"a","nvlinks":{"a":1}})")), HasSubstr("a, which is no other device"));
  EXPECT_THAT(problem_of(with(R"({"uuid":"a","nvlinks":{"b":2}},{"uuid":"b","nvlinks":{"a":1}})")),
              HasSubstr("a has 2 NVLinks to b, which tells it otherwise"));
  EXPECT_THAT(problem_of(with(R"({"uuid":"a","mig":{"instances":[{"profile":"1g.10gb","start":0}]}})")),
              HasSubstr("a has MIG instances while MIG is not enabled"));
  EXPECT_THAT(problem_of(with(R"({"uuid":"a","health":{"reason":"Xid 79"}})")),
              HasSubstr("devices[0].health: has a reason and does not say whether the device is healthy"));
  const std::string left = R"({"uuid":"a","numaNode":0,"pcie":{"root":"r","switch":"s"}},)",
                    right = R"({"uuid":"b","numaNode":1,"pcie":{"root":")";
  EXPECT_THAT(problem_of(with(left + right + R"(r","switch":"s"}})")),
              HasSubstr("a is at NUMA node 0 and b at 1, while both are below PCIe root r, which is at one"));
  EXPECT_EQ(problem_of(with(left + right + R"(q","switch":"s"}})")), "");
  EXPECT_EQ(problem_of(with(left + R"({"uuid":"b","pcie":{"root":"r","switch":"s"}})")), "");
  std::string many;
  for (int i = 0; i < 17; ++i) many += fmt::format(R"({}{{"uuid":"GPU-{}"}})", i == 0 ? "" : ",", i);
  EXPECT_THAT(problem_of(with(many)), HasSubstr("17 devices are more than the 16"));
}

TEST(Devices, NeitherKubeletNorTheAgentIsOversold) {
  const std::string good = R"({"uuid":"a"})", sick = R"({"uuid":"b","health":{"healthy":false}})",
                    cut = R"({"uuid":"c","mig":{"enabled":true}})";
  EXPECT_EQ(whole(good + "," + sick + "," + cut, 2), 1);
  EXPECT_EQ(whole(good + "," + sick, 0), 0);
  EXPECT_EQ(whole(good, 1), 1);
  const auto contradiction = whole_device_count(read_devices(with(good + "," + cut)).value(), 2);
  ASSERT_FALSE(contradiction);
  EXPECT_THAT(contradiction.error().message,
              HasSubstr("lists 1 devices that can be given whole, while kubelet has 2 nvidia.com/gpu"));
}

api::Node node_with(const std::string& devices, int64_t allocatable) {
  api::Node node;
  node.metadata.annotations.set(std::string(kDevicesAnnotation), devices);
  node.capacity.set(kGpuResource, 2);
  node.allocatable.set(kGpuResource, allocatable);
  return node;
}

TEST(Devices, ASickDeviceIsNotAllocatableWhateverKubeletSays) {
  const std::string devices = with(R"({"uuid":"a"},{"uuid":"b","health":{"healthy":false}})");
  for (const DeviceKnowledge knowledge : {DeviceKnowledge::kCounts, DeviceKnowledge::kExact}) {
    EXPECT_EQ(to_model(node_with(devices, 2), knowledge).allocatable.get(kGpuResource), 1);
    EXPECT_EQ(to_model(node_with(devices, 0), knowledge).allocatable.get(kGpuResource), 0);
  }
}

TEST(Devices, ReplicasOfASickDeviceAreNotAllocatable) {
  api::Node node = node_with(with(R"({"uuid":"a"},{"uuid":"b","health":{"healthy":false}})"), 8);
  node.metadata.labels.set("nvidia.com/gpu.replicas", "4");
  EXPECT_EQ(to_model(node, DeviceKnowledge::kCounts).allocatable.get(kGpuResource), 4);
  node.allocatable.set(kGpuResource, 3);
  EXPECT_EQ(to_model(node, DeviceKnowledge::kCounts).allocatable.get(kGpuResource), 3);
}

// More than the label nvidia.com/gpu.count says are replicas, where they can be of those that the agent lists and no
// label says that nothing is shared.
TEST(Devices, MoreThanAreListedAreReplicasOrContradictThem) {
  const auto set_aside = [](const std::map<std::string, std::string>& labels, int64_t allocatable) {
    api::Node node = node_with(with(R"({"uuid":"a"},{"uuid":"b"})"), allocatable);
    for (const auto& [key, value] : labels) node.metadata.labels.set("nvidia.com/" + key, value);
    return to_model(node, DeviceKnowledge::kCounts).set_aside;
  };
  const auto contradicts = HasSubstr("lists 2 devices that can be given whole, while kubelet has 3 nvidia.com/gpu");
  EXPECT_THAT(set_aside({}, 3), contradicts);
  EXPECT_THAT(set_aside({{"gpu.count", "2"}}, 3), contradicts);
  EXPECT_THAT(set_aside({{"gpu.count", "2"}, {"gpu.replicas", "1"}, {"gpu.sharing-strategy", "none"}}, 3), contradicts);
  EXPECT_THAT(set_aside({{"gpu.count", "3"}, {"gpu.replicas", "1"}, {"gpu.sharing-strategy", "none"}}, 3), contradicts);
  EXPECT_EQ(set_aside({{"gpu.count", "2"}}, 4), "");
  EXPECT_EQ(set_aside({{"gpu.count", "2"}, {"gpu.replicas", "4"}}, 8), "");
}

// Two devices of two 3g each, of which one is ill.
api::Node cut_node() {
  const std::string instances = R"("mig":{"enabled":true,"instances":[{"profile":"3g.20gb","start":0},
                                    {"profile":"3g.20gb","start":4}]})";
  api::Node node;
  node.metadata.annotations.set(
      "berth.dev/devices",
      with(R"({"uuid":"a",)" + instances + R"(},{"uuid":"b","health":{"healthy":false},)" + instances + "}"));
  return node;
}

TEST(Devices, InstancesOfASickDeviceAreNotAllocatable) {
  api::Node node = cut_node();
  node.allocatable.set("nvidia.com/mig-3g.20gb", 4);
  EXPECT_EQ(to_model(node, DeviceKnowledge::kCounts).allocatable.get("nvidia.com/mig-3g.20gb"), 2);
  node.allocatable.set("nvidia.com/mig-3g.20gb", 1);
  EXPECT_EQ(to_model(node, DeviceKnowledge::kCounts).allocatable.get("nvidia.com/mig-3g.20gb"), 1);
}

TEST(Devices, MoreInstancesThanAreListedContradictThem) {
  api::Node node = cut_node();
  node.allocatable.set("nvidia.com/mig-3g.20gb", 5);
  ASSERT_FALSE(devices_of(node));
  EXPECT_THAT(devices_of(node).error().message,
              HasSubstr("lists 4 MIG instances that are nvidia.com/mig-3g.20gb, while kubelet has 5 allocatable"));
  node.metadata.annotations.set("berth.dev/mig-desired", R"({"version":"v1","state":"wanted"})");
  EXPECT_EQ(devices_of(node).value()->allocatable.get("nvidia.com/mig-3g.20gb"), 2) << "it is being cut";
}

TEST(Devices, InstancesMayBeAdvertisedSeveralTimesOrAsGpus) {
  api::Node node = cut_node();
  node.metadata.labels.set("nvidia.com/mig-3g.20gb.replicas", "3");
  node.allocatable.set("nvidia.com/mig-3g.20gb", 12);
  EXPECT_EQ(devices_of(node).value()->allocatable.get("nvidia.com/mig-3g.20gb"), 6);
  node.allocatable = {{"nvidia.com/mig-3g.20gb.shared", 12}};
  EXPECT_EQ(devices_of(node).value()->allocatable.get("nvidia.com/mig-3g.20gb.shared"), 6);
  node = cut_node();
  node.metadata.labels.set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb");
  node.allocatable.set(kGpuResource, 4);
  EXPECT_EQ(devices_of(node).value()->allocatable.get(kGpuResource), 2);
  node.allocatable.set(kGpuResource, 5);
  EXPECT_FALSE(devices_of(node));
}

TEST(Devices, ANodeThatContradictsItselfIsSaidToDoSo) {
  EXPECT_FALSE(devices_of(node_with(with(R"({"uuid":"a"})"), 2)));
  EXPECT_FALSE(devices_of(node_with("no JSON", 2)));
  EXPECT_FALSE(devices_of(api::Node{}).value().has_value()) << "no agent";
}

TEST(Devices, InstancesThatOverlapAndPodsWithoutANamespaceContradictThemselves) {
  const auto device = [](const std::string& more) {
    return R"({"version":"v1","devices":[{"uuid":"a","model":"NVIDIA-A100-SXM4-80GB",)" + more + "}]}";
  };
  const auto error = [&](const std::string& more) {
    const auto read = read_devices(device(more));
    return read ? "" : read.error().message;
  };
  EXPECT_NE(
      error(R"("mig":{"enabled":true,"instances":[{"profile":"1g.10gb","start":0},{"profile":"7g.80gb","start":0}]})")
          .find("overlaps"),
      std::string::npos);
  EXPECT_NE(error(R"("mig":{"enabled":true,"instances":[{"profile":"9g.10gb","start":0}]})").find("9g.10gb"),
            std::string::npos);
  EXPECT_NE(error(R"("pods":["x"])").find("no namespace/name"), std::string::npos);
  EXPECT_EQ(error(R"("pods":["default/x"])"), "");
}

TEST(Devices, WhoHasAnInstanceIsOnItsDevice) {
  const auto read = read_devices(
      R"({"version":"v1","devices":[{"uuid":"a","mig":{"enabled":true,"instances":[
          {"profile":"1g.5gb","start":0,"pods":["ml/x"]},{"profile":"1g.5gb","start":1,"pods":["ml/y","ml/x"]}]},
          "pods":["ml/y"]}]})");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->devices[0].pods, (std::vector<std::string>{"ml/y", "ml/x"}));
}

TEST(Devices, WithoutAModelOfItsOwnALayoutIsJudgedByTheLabel) {
  api::Node node = node_with(
      R"({"version":"v1","devices":[{"uuid":"a","mig":{"enabled":true,"instances":[{"profile":"4g.20gb","start":4}]}}]})",
      0);
  EXPECT_TRUE(devices_of(node));
  node.metadata.labels.set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB");
  const auto told = devices_of(node);
  ASSERT_FALSE(told.has_value());
  EXPECT_NE(told.error().message.find("cannot be cut so"), std::string::npos) << told.error().message;
}

TEST(Devices, SharesGoOnlyWhereUsableDevicesAreAlike) {
  const auto sharing = [](const std::string& first, int64_t label,
                          model::GpuSharing before = model::GpuSharing::kDevices, const char* keeps = "false") {
    model::NodeGpus gpus{before, "nvidia.com/gpu", label, 1};
    const auto devices = read_devices(R"({"version":"v1","keepsShares":)" + std::string(keeps) +
                                      R"(,"devices":[{"uuid":"a",)" + first + R"(},{"uuid":"b","memoryMiB":1024}]})");
    EXPECT_TRUE(devices);
    bound_shares(*devices, gpus);
    return std::pair(gpus.sharing, gpus.memory_bytes);
  };
  const int64_t gib = int64_t{1} << 30;
  EXPECT_EQ(sharing(R"("memoryMiB":1024)", 0), std::pair(model::GpuSharing::kDevices, gib));
  EXPECT_EQ(sharing(R"("memoryMiB":1024)", gib), std::pair(model::GpuSharing::kDevices, gib));
  EXPECT_EQ(sharing(R"("memoryMiB":1024)", 2 * gib).first, model::GpuSharing::kUnlike);
  EXPECT_EQ(sharing(R"("memoryMiB":2048)", 0).first, model::GpuSharing::kUnlike);
  EXPECT_EQ(sharing(R"("memoryMiB":2048,"health":{"healthy":false})", gib).first, model::GpuSharing::kDevices);
  EXPECT_EQ(sharing(R"("memoryMiB":2048,"mig":{"enabled":true})", 0), std::pair(model::GpuSharing::kDevices, gib));
  EXPECT_EQ(sharing(R"("numaNode":0)", gib).first, model::GpuSharing::kDevices) << "the label tells its memory";
  EXPECT_EQ(sharing(R"("numaNode":0)", 0), std::pair(model::GpuSharing::kDevices, int64_t{0})) << "one's is not told";
  EXPECT_EQ(sharing(R"("memoryMiB":1024)", 0, model::GpuSharing::kNone).first, model::GpuSharing::kNone);
  EXPECT_EQ(sharing(R"("memoryMiB":1024)", 0, model::GpuSharing::kNone, "true").first, model::GpuSharing::kDevices);
  EXPECT_EQ(sharing(R"("memoryMiB":1024)", 0, model::GpuSharing::kReplicas, "true").first,
            model::GpuSharing::kReplicas);
}

}  // namespace
}  // namespace berth::bridge
