#include "quota/alike.h"

#include <absl/hash/hash.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/same_value.h"

namespace berth::quota {
namespace {

// It names the Job, or the group of pods.
bool names_owner(std::string_view label) {
  constexpr std::string_view kPrefix = "batch.kubernetes.io/";
  if (label.starts_with(kPrefix)) label.remove_prefix(kPrefix.size());
  return label == "job-name" || label == "controller-uid" || label == "kueue.x-k8s.io/pod-group-name";
}

const model::Labels& labels_of(const model::PodSet& set) {
  static const model::Labels none;
  return set.labels == nullptr ? none : *set.labels;
}

bool same_labels(const model::Labels& a, const model::Labels& b) {
  auto x = a.begin(), y = b.begin();
  for (;; ++x, ++y) {
    while (x != a.end() && names_owner(x->first)) ++x;
    while (y != b.end() && names_owner(y->first)) ++y;
    if (x == a.end() || y == b.end()) return x == a.end() && y == b.end();
    if (*x != *y) return false;
  }
}

bool alike_for_quota(const model::PodSet& a, const model::PodSet& b) {
  return a.name == b.name && a.count == b.count && a.min_count == b.min_count && a.reclaimable == b.reclaimable &&
         a.requests == b.requests && a.node_selector == b.node_selector && a.required_affinity == b.required_affinity &&
         a.tolerations == b.tolerations && a.slices == b.slices && same_value(a.spec, b.spec) && a.members.empty() &&
         b.members.empty();
}

// How long it runs decides what it may have that is kept for others.
std::pair<int64_t, int64_t> runtimes(const model::Workload& workload) {
  return {workload.runtime.value_or(Duration{-1}).nanos, workload.max_execution.value_or(Duration{-1}).nanos};
}

}  // namespace

uint64_t likeness(const model::Workload& workload) {
  size_t out = absl::HashOf(workload.namespace_name, workload.queue, workload.user, workload.priority,
                            runtimes(workload), workload.pod_sets.size());
  for (const model::PodSet& set : workload.pod_sets) {
    out = absl::HashOf(out, set.name, set.count, set.reclaimable, set.node_selector);
    for (const auto& [name, amount] : set.requests) out = absl::HashOf(out, name, amount);
  }
  return out;
}

bool alike_for_quota(const model::Workload& a, const model::Workload& b) {
  return a.priority == b.priority && runtimes(a) == runtimes(b) && a.queue == b.queue &&
         a.namespace_name == b.namespace_name && a.user == b.user &&
         std::ranges::equal(a.pod_sets, b.pod_sets,
                            [](const model::PodSet& x, const model::PodSet& y) { return alike_for_quota(x, y); });
}

bool alike(const model::Workload& a, const model::Workload& b) {
  const auto same = [](const model::PodSet& x, const model::PodSet& y) {
    return same_labels(labels_of(x), labels_of(y));
  };
  return alike_for_quota(a, b) && std::ranges::equal(a.pod_sets, b.pod_sets, same);
}

}  // namespace berth::quota
