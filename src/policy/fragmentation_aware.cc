// Keeps what is left of a node's GPUs of use to the pods that the cluster sees: a pod goes where the expected use of
// what is left falls least.
//
// The use that pods of one shape have of a node is how many of its GPUs would be taken if such pods, and no others,
// came until none fits: by CPU, memory, the number of pods, whole GPUs, parts of shared ones, MIG instances. The
// expected use is the mean over the measured mix of requests (engine/request_mix.h). So a pod takes the remnant that
// hardly anything fits, leaves eights whole where eights are asked for, and keeps CPU beside free GPUs where they are
// asked for with CPU; pods without GPUs, too. Points are −1000 · fall / (fall + what the pod asks for, at least one
// GPU).
//
// Source of the idea: Weng et al., "Beware of Fragmentation" (ATC '23), which counts what one pod of each kind cannot
// use; here pods come until the node is full, so that CPU that runs short counts before it is short.
#include "base/int128.h"
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr int64_t kMilli = 1000;  // of a device

// A node, as it is or with a pod on it.
class Remnant {
 public:
  explicit Remnant(const NodeView& node) : node_(node) {}
  Remnant(const NodeView& node, const PodClass& pod) : node_(node), pod_(&pod) {
    if (!pod.shares_gpu) return;
    const model::NodeGpus& gpus = node.node().gpus;
    if (gpus.sharing == model::GpuSharing::kReplicas) opened_ = node.replicas_beside_requests(pod);
    if (gpus.sharing != model::GpuSharing::kDevices) return;
    units_ = gpus.units_of(pod.spec->gpu_share);
    device_ = node.best_shared(units_);
    opened_ = device_ < 0 ? 1 : 0;
  }

  // Thousandths of devices that pods of the shape would take.
  Int128 use_milli(const RequestShape& shape) const {
    int64_t pods = free(kPods);
    Int128 each = 0;
    if (shape.cpu_millis > 0) pods = std::min(pods, free(kCpu) / shape.cpu_millis);
    if (shape.memory_bytes > 0) pods = std::min(pods, free(kMemory) / shape.memory_bytes);
    for (const auto& [id, amount] : shape.gpus) {
      pods = std::min(pods, free(ResourceId{id}) / amount);
      each += Int128{amount} * kMilli / parts_of(ResourceId{id});
    }
    const model::GpuShare share{shape.share_micros, shape.share_memory_bytes, ""};
    if (!share.asked()) return pods * each;
    return std::min(pods, shares_that_fit(share)) * (each + milli_of(share));
  }

 private:
  int64_t free(ResourceId id) const {
    int64_t amount = node_.free(id);
    if (pod_ != nullptr) amount -= pod_->request(id) + (id == node_.share_resource() ? opened_ : 0);
    return std::max<int64_t>(amount, 0);
  }
  // As how many the resource advertises each device.
  int64_t parts_of(ResourceId id) const {
    const model::NodeGpus& gpus = node_.node().gpus;
    const bool parts = gpus.sharing == model::GpuSharing::kReplicas && id == node_.share_resource();
    return parts ? std::max<int64_t>(1, gpus.replicas) : 1;
  }
  int64_t milli_of(const model::GpuShare& share) const {
    const model::NodeGpus& gpus = node_.node().gpus;
    return static_cast<int64_t>(Int128{gpus.units_of(share)} * kMilli / gpus.units());
  }
  int64_t shares_that_fit(const model::GpuShare& share) const {
    const model::NodeGpus& gpus = node_.node().gpus;
    const int64_t units = gpus.units_of(share), whole = gpus.units();
    if (units <= 0 || units > whole || gpus.sharing == model::GpuSharing::kNone) return 0;
    if (gpus.sharing == model::GpuSharing::kReplicas)
      return free(node_.share_resource()) / std::max<int64_t>(1, gpus.replicas_of(share));
    int64_t fit = free(node_.share_resource()) * (whole / units);
    if (device_ < 0 && units_ > 0) fit += (whole - std::min(units_, whole)) / units;
    const std::vector<int64_t>& open = node_.devices().all();
    for (size_t i = 0; i < open.size(); ++i) {
      const int64_t used = open[i] + (static_cast<int32_t>(i) == device_ ? units_ : 0);
      if (open[i] > 0 && used < whole) fit += (whole - used) / units;
    }
    return fit;
  }

  const NodeView& node_;
  const PodClass* pod_ = nullptr;
  int64_t opened_ = 0;   // of the resource that shares are a part of, which the pod's share takes
  int32_t device_ = -1;  // the open device that it goes on
  int64_t units_ = 0;    // of its share
};

// What the pod asks for, in thousandths of devices, as far as the node does not matter.
int64_t asked_milli(const PodClass& pod, const NodeView& node) {
  int64_t amount = 0;
  for (const ResourceAmount& request : pod.requests)
    if (node.resources().is_gpu(request.id)) amount += request.amount;
  return std::clamp<int64_t>(amount, 1, kMaxAmount / kMilli) * kMilli;
}

int32_t fragmentation_aware(const PodClass& pod, const NodeView& node) {
  if (!node.has_gpus()) return 0;
  const Remnant before(node), after(node, pod);
  Int128 fall = 0, count = 0;
  for (const auto& [shape, times] : node.mix().shapes()) {
    fall += times * (before.use_milli(shape) - after.use_milli(shape));
    count += times;
  }
  if (fall <= 0) return 0;
  return static_cast<int32_t>(-kMaxScore * fall / (fall + count * asked_milli(pod, node)));
}

}  // namespace

extern const PolicyInfo kFragmentationAware = mix_score_policy(
    "fragmentation-aware", "keeps what is left of GPUs of use to the requests that come", 0, &fragmentation_aware);

}  // namespace berth::policy
