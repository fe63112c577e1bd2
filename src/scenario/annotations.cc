#include "scenario/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/kueue_names.h"
#include "api/names.h"
#include "api/queue_limits.h"
#include "api/requests.h"
#include "api/runtime_estimate.h"
#include "api/victim_terms.h"
#include "base/time.h"
#include "bridge/devices.h"
#include "bridge/gpus.h"
#include "bridge/mig.h"
#include "bridge/mig_desired.h"
#include "scenario/manifests.h"

namespace berth::scenario {
namespace {

constexpr std::array kKnown = {
    kSimulatedArrival,
    kSimulatedReady,
    kSimulatedRuntime,
    kSimulatedRepartition,
    bridge::kMigPolicy,
    bridge::kMigDesiredAnnotation,
    bridge::kMigFailedAnnotation,
    bridge::kPlacementAnnotation,
    bridge::kTopologyAnnotation,
    bridge::kDevicesAnnotation,
    bridge::kPreemptibleAnnotation,
    bridge::kAllowProtectedAnnotation,
    bridge::kGpuFractionAnnotation,
    bridge::kGpuMemoryAnnotation,
    bridge::kGpuDevicesAnnotation,
    api::kRuntimeEstimateAnnotation,
    api::kCheckpointIntervalAnnotation,
    api::kLastCheckpointAnnotation,
    api::kMinimumRuntimeAnnotation,
    api::kVictimOrderAnnotation,
    api::kLostWorkMaxAnnotation,
    api::kUserAnnotation,
    api::kUserLimitsAnnotation,
    api::kBudgetGpuHoursAnnotation,
    api::kBudgetDollarsAnnotation,
    api::kBudgetWindowAnnotation,
    api::kBudgetWhenSpentAnnotation,
    api::kEvictedAnnotation,
};

bool is_known(std::string_view key) { return std::ranges::find(kKnown, key) != kKnown.end(); }

// Of one that begins with kAnnotationPrefix and is not known: the one that was meant; empty: nobody can tell.
std::string_view near_known(std::string_view key) {
  std::vector<std::string_view> names;  // without the prefix, which would make any two of them alike
  for (const std::string_view known : kKnown) names.push_back(known.substr(kAnnotationPrefix.size()));
  const std::string_view near = api::closest(key.substr(kAnnotationPrefix.size()), names);
  return near.empty() ? near : kKnown[static_cast<size_t>(std::ranges::find(names, near) - names.begin())];
}

// What is wrong with the value, and the way out; empty: nothing, or the annotation is none of these.
std::string wrong_annotation(std::string_view key, const std::string& value, const bridge::TopologyLevels& levels) {
  if (key == bridge::kPreemptibleAnnotation || key == bridge::kAllowProtectedAnnotation)
    return value == "true" || value == "false" ? "" : "'" + value + "' is neither true nor false";
  if (key == bridge::kPlacementAnnotation)
    return value == "pack" || value == "spread" ? "" : fmt::format("'{}' is no placement; write pack or spread", value);
  if (key == bridge::kTopologyAnnotation) return bridge::topology_annotation_problem(value, levels);
  if (key == api::kRuntimeEstimateAnnotation) return api::runtime_estimate_problem(value);
  if (std::string problem = api::victim_annotation_problem(key, value); !problem.empty()) return problem;
  if (std::string problem = api::queue_limit_problem(key, value); !problem.empty()) return problem;
  if (key == bridge::kMigDesiredAnnotation) {
    const auto desired = bridge::read_mig_desired(value);
    return desired ? "" : desired.error().message;
  }
  if (key == bridge::kMigPolicy)
    return value == "dynamic" || value == "static" ? "" : fmt::format("'{}' is neither dynamic nor static", value);
  if (key != kSimulatedArrival && key != kSimulatedRuntime && key != kSimulatedReady && key != kSimulatedRepartition)
    return "";
  if (key == kSimulatedReady && value == kNeverReady) return "";
  const auto duration = parse_duration(value);
  if (!duration) return duration.error().message;
  if (*duration > kSimulatedDurationMax) return fmt::format("'{}' is more than ten years", value);
  return "";
}

}  // namespace

bool is_of_queued_work(std::string_view key) {
  return key == api::kRuntimeEstimateAnnotation || key == api::kCheckpointIntervalAnnotation ||
         key == api::kLastCheckpointAnnotation || key == api::kUserAnnotation;
}

KeyFinding find_in_annotation(std::string_view key, const std::string& value, const bridge::TopologyLevels& levels,
                              std::string_view owner) {
  KeyFinding out;
  const bool ours = key.starts_with(kAnnotationPrefix);
  if (!ours && key != bridge::kKaiFraction && key != bridge::kKaiMemory) return out;
  if (ours && !is_known(key)) {
    if (const std::string_view near = near_known(key); !near.empty())
      out.wrong = fmt::format("unknown annotation; did you mean {}?", near);
    else out.remark = fmt::format("annotation {} means nothing to Berth", key);
    return out;
  }
  out.wrong = wrong_annotation(key, value, levels);
  if (out.wrong.empty() && !owner.empty() && !key.starts_with("berth.dev/simulated-"))
    out.remark = fmt::format(
        "annotation {} has no effect on {}, whose pods do not get it; write it into the template's metadata", key,
        owner);
  return out;
}

KeyFinding find_in_label(std::string_view key, const std::string& value, bool of_node) {
  KeyFinding out;
  if (!key.starts_with(kAnnotationPrefix)) return out;
  const std::string_view policy = bridge::kMigPolicy;  // the only one that may be either
  const bool is_near =
      !api::closest(key.substr(kAnnotationPrefix.size()), {policy.substr(kAnnotationPrefix.size())}).empty();
  if (of_node && key == policy) out.wrong = wrong_annotation(key, value, {});
  else if (is_known(key)) out.remark = fmt::format("label {} means nothing to Berth; write it as an annotation", key);
  else if (of_node && is_near) out.wrong = fmt::format("unknown label; did you mean {}?", policy);
  return out;
}

std::vector<std::string> unheeded_annotations(const api::ObjectMeta& metadata, const api::PodSpec& spec) {
  static const std::vector<std::string_view> kai = {bridge::kKaiFraction, bridge::kKaiMemory, bridge::kKaiDevices};
  const bool bound = !spec.node_name.empty();
  api::Pod pod;
  pod.spec = spec;
  std::vector<std::string> out;
  if (std::string problem = bridge::gpu_share_of(metadata, api::effective_requests(pod)).problem; !problem.empty()) {
    problem.pop_back();  // its full stop
    out.push_back(problem + (bound ? "" : "; until then the pod waits"));
  }
  for (const auto& [key, value] : metadata.annotations) {
    const std::string_view near = std::ranges::find(kai, key) == kai.end() ? api::closest(key, kai) : "";
    if (!near.empty()) out.push_back(fmt::format("annotation {} means nothing to Berth; did you mean {}?", key, near));
    if (key != bridge::kGpuDevicesAnnotation) continue;
    const std::string wrong = bound ? bridge::gpu_annotation_problem(key, value) : "";
    if (!wrong.empty()) out.push_back(fmt::format("annotation {}: {}", key, wrong));
    if (!bound)
      out.push_back(
          fmt::format("annotation {} is ignored: which devices a pod gets Berth chooses, and writes there "
                      "with the bind",
                      key));
  }
  return out;
}

}  // namespace berth::scenario
