#include "model/peers.h"

#include <algorithm>

namespace berth::model {

bool LabelSelector::matches(const Labels& labels) const {
  return !selects_nothing &&
         std::all_of(requirements.begin(), requirements.end(),
                     [&](const NodeSelectorRequirement& r) { return r.matches(labels.find(r.key)); });
}

std::string to_string(const LabelSelector& selector) {
  if (selector.selects_nothing) return "no labels at all";
  std::string out;
  for (const NodeSelectorRequirement& requirement : selector.requirements)
    out += (out.empty() ? "" : ", ") + to_string(requirement);
  return out.empty() ? "any labels" : out;
}

bool PeerSelector::matches(const std::string& namespace_name, const Labels& namespace_labels, const Labels& pod_labels,
                           bool terminating) const {
  if (terminating && skips_terminating) return false;
  if (!std::binary_search(namespaces.begin(), namespaces.end(), namespace_name) &&
      !(namespace_selector && namespace_selector->matches(namespace_labels)))
    return false;
  return pods.matches(pod_labels);
}

}  // namespace berth::model
