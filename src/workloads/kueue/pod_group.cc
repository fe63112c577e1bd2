#include "workloads/kueue/pod_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/kueue_names.h"
#include "workloads/kueue/queued.h"

namespace berth::workloads {
namespace {

constexpr size_t kPodSetsMax = 8;  // of a Workload's schema

// Those by which a pod asks for a place or a share of a GPU: Berth's own, KAI's, and Kueue's of topology.
model::Labels place_annotations(const api::ObjectMeta& metadata) {
  model::Labels out;
  for (const auto& [key, value] : metadata.annotations)
    if (key.starts_with("berth.dev/") || key.starts_with("gpu-") || key.starts_with("kueue.x-k8s.io/podset-"))
      out.set(key, value);
  return out;
}

// What pods of one role may differ in: names, images, claims of their own, and what was added when they were let in.
api::PodSpec shape(const api::PodSpec& spec) {
  api::PodSpec out = spec;
  out.node_name.clear();
  out.scheduling_gates.clear();
  out.claim_volumes.clear();
  out.priority = out.priority.value_or(0);  // as the API server fills it in
  for (auto* containers : {&out.containers, &out.init_containers})
    for (api::Container& container : *containers) {
      container.name.clear();
      container.image.clear();
    }
  return out;
}

// Two pods of one role. That of its pod set is a label that each is given.
bool nodes_see_alike(const api::Pod& a, const api::Pod& b) {
  const auto labels = [](const api::Pod& pod) {
    model::Labels out = pod.metadata.labels;
    out.erase(api::kPodSetLabel);
    return out;
  };
  const auto is_made = [](const api::ClaimVolume& volume) { return volume.made.has_value(); };
  return a.spec.claim_volumes == b.spec.claim_volumes && labels(a) == labels(b) &&
         (&a == &b || std::ranges::none_of(a.spec.claim_volumes, is_made));
}

// The annotation's whole number above 0; nothing without one.
std::optional<int32_t> count_of(const api::Pod& pod) {
  const std::string* text = pod.metadata.annotation(api::kGroupCountAnnotation);
  int32_t out = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
  if (error != std::errc{} || end != text->data() + text->size() || out < 1) return std::nullopt;
  return out;
}

bool is_true(const std::string* annotation) { return annotation != nullptr && *annotation == "true"; }

// Why the pods cannot be one group; empty: they can.
std::string disagreement(const std::vector<const api::Pod*>& pods) {
  const api::Pod& first = *pods.front();
  for (const api::Pod* pod : pods) {
    if (!count_of(*pod))
      return fmt::format("pod {} lacks a whole number in the annotation {}", pod->metadata.name,
                         api::kGroupCountAnnotation);
    if (queue_of(pod->metadata) != queue_of(first.metadata))
      return fmt::format("pods {} and {} of one group name different queues", first.metadata.name, pod->metadata.name);
    if (count_of(*pod) != count_of(first))
      return fmt::format("pods {} and {} of one group differ in the annotation {}", first.metadata.name,
                         pod->metadata.name, api::kGroupCountAnnotation);
  }
  return "";
}

}  // namespace

std::string_view group_of(const api::ObjectMeta& metadata) {
  const std::string* name = metadata.labels.find(api::kGroupLabel);
  return name == nullptr ? std::string_view() : std::string_view(*name);
}

std::string workload_name_of(const api::Pod& pod) {
  const std::string_view group = group_of(pod.metadata);
  return group.empty() ? workload_of(pod).metadata.name : std::string(group);
}

bool waits_for_admission(const api::Pod& pod) {
  return std::ranges::find(pod.spec.scheduling_gates, api::kAdmissionGate) != pod.spec.scheduling_gates.end();
}

bool same_role(const api::PodTemplate& a, const api::PodTemplate& b) {
  const std::string *hash_a = a.metadata.annotation(api::kRoleHashAnnotation),
                    *hash_b = b.metadata.annotation(api::kRoleHashAnnotation);
  if (hash_a != nullptr && hash_b != nullptr && *hash_a != *hash_b) return false;
  return shape(a.spec) == shape(b.spec) && place_annotations(a.metadata) == place_annotations(b.metadata);
}

api::OwnerReference pod_owner(const api::ObjectMeta& pod) {
  api::OwnerReference out;
  out.api_version = "v1";
  out.kind = "Pod";
  out.name = pod.name;
  out.uid = pod.uid;
  return out;
}

bool is_of_pods(const api::Workload& workload) {
  const std::vector<api::OwnerReference>& owners = workload.metadata.owners;
  if (owners.empty()) return workload.metadata.annotation(api::kIsGroupAnnotation) != nullptr;
  return std::ranges::all_of(owners, [](const auto& owner) { return owner.kind == "Pod"; });
}

bool is_of_set(const api::Pod& pod, const api::Workload& workload, const api::WorkloadPodSet& set) {
  const bool waits = waits_for_admission(pod) && !group_of(pod.metadata).empty();
  if (!waits && workload.pod_sets.size() == 1) return true;
  const std::string* told = pod.metadata.labels.find(api::kPodSetLabel);
  if (told != nullptr && (!waits || *told != set.name)) return *told == set.name;
  api::PodTemplate role{pod.metadata, pod.spec};
  role.spec.scheduling_gates.clear();
  return same_role(set.pod_template, role);
}

std::vector<std::vector<const api::Pod*>> told_apart(const std::vector<const api::Pod*>& pods,
                                                     const api::Workload& workload) {
  std::vector<std::vector<const api::Pod*>> out;
  for (const api::WorkloadPodSet& set : workload.pod_sets) {
    std::vector<const api::Pod*>& own = out.emplace_back();
    std::ranges::copy_if(pods, std::back_inserter(own),
                         [&](const api::Pod* pod) { return is_of_set(*pod, workload, set); });
    std::stable_partition(own.begin(), own.end(), [](const api::Pod* pod) { return !waits_for_admission(*pod); });
    if (std::ssize(own) > set.count) own.resize(static_cast<size_t>(set.count));
    const auto is_like_first = [&](const api::Pod* pod) { return nodes_see_alike(*pod, *own.front()); };
    if (own.size() < 2 || std::ranges::all_of(own, is_like_first)) own.clear();
  }
  return out;
}

std::string lacking_pods(const std::vector<const api::Pod*>& pods, const api::Workload& workload) {
  if (workload.metadata.annotation(api::kIsGroupAnnotation) == nullptr) return "";
  const auto may_begin = [](const api::Pod* pod) {
    const std::string* says = pod->metadata.annotation(api::kFastAdmissionAnnotation);
    return says != nullptr && *says == "true";
  };
  int32_t total = 0, missing = 0;
  for (const api::WorkloadPodSet& set : workload.pod_sets) {
    const auto there = std::ranges::count_if(pods, [&](const api::Pod* pod) {
      const bool counts = pod->status.phase == "Succeeded" || (!pod->terminal() && !pod->metadata.deleted);
      return counts && is_of_set(*pod, workload, set);
    });
    total += set.count;
    missing += std::max(0, set.count - static_cast<int32_t>(there));
  }
  if (missing == 0 || (missing < total && std::ranges::any_of(pods, may_begin))) return "";
  return fmt::format(
      "{} of the {} pods of its group are not there, or not like those that it was made of: it waits for others in "
      "their place",
      missing, total);
}

std::string why_outside(const api::Pod& pod, const api::Workload& workload) {
  const auto has_it = [&](const api::WorkloadPodSet& set) { return is_of_set(pod, workload, set); };
  if (!std::ranges::any_of(workload.pod_sets, has_it))
    return fmt::format(
        "no pod of the Workload {}, which was made for the group before, is like this one in what it asks for and "
        "where it may run; give the pod a group of its own, or delete the group and make it anew",
        workload.metadata.name);
  return fmt::format("the Workload {} has no further pod like this one: all that it counts are there",
                     workload.metadata.name);
}

ComposedGroup compose_group(const std::vector<const api::Pod*>& pods) {
  ComposedGroup out;
  const api::Pod& first = *pods.front();
  const std::string_view group = group_of(first.metadata);
  if (group.empty()) {
    out.workload = workload_of(first);
    out.examples = {0};
    return out;
  }
  out.trouble = disagreement(pods);
  if (!out.trouble.empty()) return out;
  const int32_t total = *count_of(first);
  const bool fast = is_true(first.metadata.annotation(api::kFastAdmissionAnnotation));
  const auto here = std::min<int64_t>(total, std::ssize(pods));
  if (here < total && !fast) {
    out.trouble = fmt::format("the group {} has {} of {} pods", group, here, total);
    return out;
  }
  api::Workload workload = workload_of(first);
  workload.metadata.name = group;
  workload.metadata.annotations.set(std::string(api::kIsGroupAnnotation), "true");
  workload.metadata.owners.clear();
  workload.pod_sets.clear();
  for (size_t i = 0; i < static_cast<size_t>(here); ++i) {
    const api::Pod& pod = *pods[i];
    workload.metadata.owners.push_back(pod_owner(pod.metadata));
    api::PodTemplate role{pod.metadata, pod.spec};
    role.spec.scheduling_gates.clear();
    const auto known = std::ranges::find_if(
        workload.pod_sets, [&](const api::WorkloadPodSet& set) { return same_role(set.pod_template, role); });
    if (known != workload.pod_sets.end()) {
      ++known->count;
      continue;
    }
    const std::string* hash = pod.metadata.annotation(api::kRoleHashAnnotation);
    size_t number = workload.pod_sets.size();
    std::string role_name = hash != nullptr ? *hash : fmt::format("role-{}", number);
    while (std::ranges::find(workload.pod_sets, role_name, &api::WorkloadPodSet::name) != workload.pod_sets.end())
      role_name = fmt::format("role-{}", number++);  // of pods that are not like this one
    api::WorkloadPodSet& set = workload.pod_sets.emplace_back();
    set.name = std::move(role_name);
    set.pod_template = std::move(role);
    out.examples.push_back(i);
  }
  if (workload.pod_sets.size() > kPodSetsMax) {
    out.trouble = fmt::format("the pods of group {} have {} different roles; a Workload holds {}", group,
                              workload.pod_sets.size(), kPodSetsMax);
    return out;
  }
  if (workload.pod_sets.size() == 1) workload.pod_sets.front().name = "main";
  workload.pod_sets.front().count += total - static_cast<int32_t>(here);  // the rest of a group that is let in early
  out.workload = std::move(workload);
  return out;
}

GroupEnd end_of_group(const std::vector<const api::Pod*>& pods, int32_t total) {
  if (pods.empty()) return {};
  const auto in_phase = [&](std::string_view phase) {
    return static_cast<int32_t>(std::ranges::count(pods, phase, [](const api::Pod* pod) { return pod->status.phase; }));
  };
  const int32_t succeeded = in_phase("Succeeded"), failed = in_phase("Failed");
  const bool alone = group_of(pods.front()->metadata).empty();
  if (alone && succeeded + failed > 0) return {succeeded > 0 ? "Succeeded" : "Failed", pods.front()->status.message};
  if (succeeded >= total && !alone) return {"Succeeded", fmt::format("Pods succeeded: {}/{}.", succeeded, total)};
  const auto is_last = [](const api::Pod* pod) {
    const std::string* retriable = pod->metadata.annotation(api::kRetriableAnnotation);
    return retriable != nullptr && *retriable == "false";
  };
  if (failed > 0 && succeeded + failed == std::ssize(pods) && std::ranges::any_of(pods, is_last))
    return {"Failed", fmt::format("Pods failed: {}; succeeded: {}/{}.", failed, succeeded, total)};
  return {};
}

}  // namespace berth::workloads
