// Turns a pod that asks for a share of a GPU away from nodes that have no device for it.
//
// Where devices are known, a share goes on one that others share already, or on one that nobody uses. Where the device
// plugin advertises each device several times, a share takes as many of these replicas as come to it, rounded up; where
// neither is so, nothing would keep the pod to its share, and no share goes there.
// Source: the annotations are those of docs/devices.md.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "engine/policy.h"
#include "model/device_topology.h"
#include "policy/why_not_cut.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

// A part of a device, up or down to the hundredth of a percent; to the millionth of a device where it is less than
// that.
std::string percent_text(int64_t units, int64_t whole, bool up) {
  const int64_t hundredth = whole / 10'000, millionth = whole / model::kWholeGpu;
  if (units > 0 && units < hundredth)
    return fmt::format("0.{:04}%", std::max<int64_t>(1, (units + (up ? millionth - 1 : 0)) / millionth));
  const int64_t parts = (units + (up ? hundredth - 1 : 0)) / hundredth;
  return fmt::format("{}.{:02}%", parts / 100, parts % 100);
}

// What is free of the replicas, or that they are not of one device.
std::string replicas_detail(const PodClass& pod, const NodeView& node) {
  const model::NodeGpus& gpus = node.node().gpus;
  const int64_t free = node.free(node.share_resource()), all = node.allocatable(node.share_resource());
  const int64_t asked = node.replicas_beside_requests(pod) + pod.request(node.share_resource());
  if (asked > free)
    return fmt::format("asks {} of {} {}, free {}", asked, all, gpus.resource, std::max<int64_t>(free, 0));
  return fmt::format(
      "asks {} replicas of one GPU; of {} {} {} are free, not so many of one GPU beside the other shares",
      gpus.replicas_of(pod.spec->gpu_share), all, gpus.resource, free);
}

// Which GPUs are in use, or not to be shared further, though no pod that is there explains it.
std::string unexplained_gpus(const NodeView& node) {
  if (!node.listed()) return "";
  std::string out;
  if (const uint32_t pods = node.on_gone(); pods > 0)
    out += fmt::format("; {} {} a GPU that is not listed any more, and counts while {}", pods,
                       pods == 1 ? "pod shares" : "pods share", pods == 1 ? "it runs" : "they run");
  std::string which;
  const model::DeviceSet strangers = node.listed().strangers() | node.listed().with_strangers();
  for (model::DeviceSet left = strangers; left != 0; left &= left - 1)
    which += fmt::format("{}{}", which.empty() ? "" : ", ",
                         node.node().devices.devices[static_cast<size_t>(std::countr_zero(left))].uuid);
  if (strangers != 0)
    out += fmt::format("; {} of {} GPUs {} given to pods that are not known there ({})", std::popcount(strangers),
                       node.listed().size(), std::has_single_bit(strangers) ? "is" : "are", which);
  return out;
}

// What is free of the devices that are shared; the ask is rounded up and this down, so that they compare as they are.
std::string device_detail(const PodClass& pod, const NodeView& node, const Reason&) {
  const model::NodeGpus& gpus = node.node().gpus;
  const int64_t free = node.free(node.share_resource()), all = node.allocatable(node.share_resource());
  const std::string ill = model::ill_gpus(node.node().devices) + unexplained_gpus(node);
  if (gpus.sharing == model::GpuSharing::kReplicas) return replicas_detail(pod, node) + ill;
  const std::string asks = percent_text(gpus.units_of(pod.spec->gpu_share), gpus.units(), true);
  const int64_t most = node.most_shared();
  if (free < 0 && most < 0)
    return fmt::format("asks {} of a GPU; the node has {}, and {} are in use or promised{}", asks, all, all - free,
                       ill);
  const std::string shared =
      most < 0 ? "none is shared"
               : "of those that are shared at most " + percent_text(most, gpus.units(), false) + " is";
  return fmt::format("asks {} of a GPU; none of {} is free, and {}{}", asks, all, shared, ill);
}

std::string memory_detail(const PodClass& pod, const NodeView& node, const Reason&) {
  return fmt::format("asks {} of a GPU's memory, each has {}",
                     model::format_resource("memory", pod.spec->gpu_share.memory_bytes),
                     model::format_resource("memory", node.node().gpus.memory_bytes));
}

std::string no_gpus_detail(const PodClass& pod, const NodeView& node, const Reason&) {
  const model::DynamicMig& mig = node.node().mig;
  const std::string ill = model::ill_gpus(node.node().devices);
  if (!mig) return ill.empty() ? ill : ill.substr(2);
  const auto devices = node.node().cut_by_agent();
  const int64_t cut = devices.empty() ? mig.devices : std::ranges::count_if(devices, &model::GpuDevice::mig_enabled);
  const std::string of = cut == mig.devices ? "its" : fmt::format("{} of its", cut);
  return fmt::format("{} {} GPU{} {} cut into MIG instances{}{}", of, mig.devices, mig.devices == 1 ? "" : "s",
                     cut == 1 ? "is" : "are", ill, why_not_cut(pod, node));
}

constexpr ReasonInfo kNoGpus{.text = "node(s) had no GPU to share", .detail = &no_gpus_detail};
constexpr ReasonInfo kNeedsAgent{.text = "node(s) needed berth-agent to share a GPU"};
constexpr ReasonInfo kInstances{.text = "node(s) had MIG instances in the place of GPUs, of which none is shared"};
constexpr ReasonInfo kUnlike{.text = "node(s) had GPUs of different memory"};
constexpr ReasonInfo kMemoryUnknown{.text = "node(s) didn't tell the memory of their GPUs (nvidia.com/gpu.memory)"};
constexpr ReasonInfo kReplicasUnknown{
    .text = "node(s) didn't tell how often they advertise a GPU (nvidia.com/gpu.replicas)"};
constexpr ReasonInfo kTooSmall{.text = "node(s) had GPUs with too little memory", .detail = &memory_detail};
constexpr ReasonInfo kNoRoom{
    .text = "node(s) had no GPU with room for the share", .preemption_helps = true, .detail = &device_detail};
constexpr ReasonInfo kOneReplica{.text = "node(s) gave each container one replica of a GPU only (MPS)"};
// More than the node has at all: no pod that leaves makes room for it.
constexpr ReasonInfo kNeverRoom{.text = "node(s) had no GPU with room for the share", .detail = &device_detail};

const ReasonInfo* objection_of(const PodClass& pod, const NodeView& node) {
  const model::NodeGpus& gpus = node.node().gpus;
  const int64_t allocatable = node.allocatable(node.share_resource());
  // GPUs that may be made whole have their memory also while all are cut.
  if (gpus.resource.empty() || (allocatable <= 0 && !node.node().mig)) return &kNoGpus;
  if (gpus.sharing == model::GpuSharing::kNone) return &kNeedsAgent;
  if (gpus.sharing == model::GpuSharing::kInstances) return &kInstances;
  if (gpus.sharing == model::GpuSharing::kUnlike) return &kUnlike;
  const int64_t units = gpus.units_of(pod.spec->gpu_share);
  if (units <= 0) return &kMemoryUnknown;
  if (units > gpus.units()) return &kTooSmall;
  if (allocatable <= 0) return &kNoGpus;
  const int64_t free = node.free(node.share_resource());
  if (gpus.replicas <= 0) return &kReplicasUnknown;
  if (gpus.sharing == model::GpuSharing::kReplicas) {
    const int64_t replicas = node.replicas_beside_requests(pod);
    const int64_t asked = pod.request(node.share_resource());
    const int64_t of_one = gpus.replicas_of(pod.spec->gpu_share);
    // NVIDIA's device plugin refuses a container more than one under MPS, unless it is configured otherwise.
    if (gpus.mps && of_one > 1) return &kOneReplica;
    if (replicas + asked > allocatable || of_one > std::min(gpus.replicas, allocatable)) return &kNeverRoom;
    return replicas + asked <= free && node.has_device_for(of_one) ? nullptr : &kNoRoom;
  }
  return free >= 1 || node.best_shared(units) >= 0 ? nullptr : &kNoRoom;
}

void gpu_share(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  if (!pod.shares_gpu) return;
  if (const ReasonInfo* objection = objection_of(pod, node)) reasons.push_back({objection, {}, 0});
}

std::string unservable(const PodClass& pod, const State&) { return pod.spec->gpu_share.problem; }

}  // namespace

extern const PolicyInfo kGpuShare =
    filter_policy("gpu-share", "turns pods that ask for a share of a GPU away from nodes without a device for it", 61,
                  &gpu_share, &unservable);

}  // namespace berth::policy
