// matchLabelKeys against the selector beside them, once the pod's labels are known.
#include <algorithm>

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

// `key In (value)` is what the API server merges in itself, and comes back with each manifest read from a cluster.
bool is_merged(const Reader& selector, std::string_view key, const model::LabelSelector& all) {
  bool in_labels = false;
  with_member(selector, "matchLabels", [&](const Reader& labels) { in_labels = has_member(labels, key); });
  return !in_labels && std::any_of(all.requirements.begin(), all.requirements.end(), [&](const auto& each) {
    return each.key == key && each.op == model::NodeSelectorOperator::kIn && each.values.size() == 1;
  });
}

// `owner`: a term of pod affinity or a topology spread constraint.
void check_keys(const Reader& owner, const std::vector<std::string>& keys,
                const std::optional<model::LabelSelector>& selector, const model::Labels& pod_labels) {
  if (keys.empty() || !selector || !owner.sound("labelSelector")) return;
  with_member(owner, "labelSelector", [&](const Reader& written) {
    for (size_t i = 0; i < keys.size(); ++i) {
      auto mentions = std::count_if(selector->requirements.begin(), selector->requirements.end(),
                                    [&](const auto& each) { return each.key == keys[i]; });
      if (pod_labels.contains(keys[i]) && !is_merged(written, keys[i], *selector)) ++mentions;
      if (mentions > 1)
        owner.problem_at("matchLabelKeys", i,
                         invalid_value(keys[i], "exists in both matchLabelKeys and labelSelector"));
    }
  });
}

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

// A list that a file gives twice, which was told, may have been longer the first time.
void check_terms(const Reader& affinity, const PodAffinity& terms, const model::Labels& labels) {
  const auto check = [&](const Reader& reader, const PodAffinityTerm& term) {
    check_keys(reader, term.match_label_keys, term.label_selector, labels);
  };
  with_member(affinity, kRequired, [&](const Reader& list) {
    for (Items items(list); items.next() && items.index() < terms.required.size();)
      check(items.value(), terms.required[items.index()]);
  });
  with_member(affinity, kPreferred, [&](const Reader& list) {
    for (Items items(list); items.next() && items.index() < terms.preferred.size();)
      with_member(items.value(), "podAffinityTerm",
                  [&](const Reader& term) { check(term, terms.preferred[items.index()].term); });
  });
}

}  // namespace

void check_match_label_keys(const Reader& pod, const PodSpec& spec, const model::Labels& labels) {
  if (!pod.strict()) return;
  with_member(pod, "spec", [&](const Reader& written) {
    with_member(written, "affinity", [&](const Reader& affinity) {
      with_member(affinity, "podAffinity", [&](const Reader& r) { check_terms(r, spec.pod_affinity, labels); });
      with_member(affinity, "podAntiAffinity",
                  [&](const Reader& r) { check_terms(r, spec.pod_anti_affinity, labels); });
    });
    with_member(written, "topologySpreadConstraints", [&](const Reader& list) {
      for (Items items(list); items.next() && items.index() < spec.topology_spread.size();) {
        const TopologySpreadConstraint& constraint = spec.topology_spread[items.index()];
        check_keys(items.value(), constraint.match_label_keys, constraint.label_selector, labels);
      }
    });
  });
}

}  // namespace berth::api
