#include "scenario/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "api/queue_limits.h"
#include "bridge/gpus.h"
#include "bridge/mig.h"
#include "bridge/mig_desired.h"
#include "bridge/to_model.h"
#include "limits/remarks.h"
#include "mig/node_devices.h"

namespace berth::scenario {
namespace {

// Of GPUs that may be cut: why they are not after all, or what is made of the counts.
std::string remark_on_cutting(const model::Node& node) {
  const auto devices = mig::devices_of(node);
  if (!devices) return devices.error().message;
  if (!node.cut_by_agent().empty()) return "";
  const auto empty = std::ranges::count_if(
      *devices, [](const mig::GpuDevice& device) { return !device.whole && device.mig.layout.empty(); });
  if (empty == 0) return "";
  return fmt::format(
      "{} of its {} GPUs are neither nvidia.com/gpu nor cut into instances; they are taken for GPUs in MIG mode "
      "without instances, which may be cut. Where a device plugin is not up yet, simulate when it is",
      empty, devices->size());
}

std::vector<std::string> remarks_on(const api::Node& node) {
  std::vector<std::string> out;
  const model::Node known = bridge::to_model(node, bridge::DeviceKnowledge::kExact);
  if (!known.set_aside.empty())
    out.push_back("it is set aside and takes no pods that ask for GPUs: " + known.set_aside);
  else if (known.cut_by_others && !bridge::berth_cuts(node))
    out.push_back(
        "NVIDIA's MIG manager is cutting its GPUs (label nvidia.com/mig.config.state), and it takes no pods that ask "
        "for GPUs here; simulate when the label says success");
  else if (!known.mig_problem.empty()) out.push_back("its MIG instances take no new work: " + known.mig_problem);
  if (std::string wrong = bridge::gpu_label_problem(node); !wrong.empty()) out.push_back(std::move(wrong));
  const auto mig = bridge::mig_of(node, bridge::DeviceKnowledge::kExact);
  if (!mig) out.push_back(mig.error().message);
  else if (*mig)
    if (std::string remark = remark_on_cutting(known); !remark.empty()) out.push_back(std::move(remark));
  return out;
}

}  // namespace

std::vector<std::string> remarks(const api::Object& object) {
  if (std::holds_alternative<api::Unknown>(object)) return {"this kind has no effect on the simulation"};
  if (std::holds_alternative<api::CronJob>(object))
    return {"a CronJob starts no job here; submit its job to see it placed"};
  if (const auto* job = std::get_if<api::Job>(&object); job != nullptr && job->has_backoff_limit_per_index)
    return {"backoffLimitPerIndex is not taken into account yet"};
  if (const auto* quota = std::get_if<api::ResourceQuota>(&object)) return limits::remarks(*quota);
  if (const auto* range = std::get_if<api::LimitRange>(&object)) return limits::remarks(*range);
  if (const auto* node = std::get_if<api::Node>(&object)) return remarks_on(*node);
  if (const auto* queue = std::get_if<api::ClusterQueue>(&object))
    if (std::string idle = api::idle_user_limits(queue->queue); !idle.empty()) return {std::move(idle)};
  return {};
}

}  // namespace berth::scenario
