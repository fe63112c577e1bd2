#include "model/volumes.h"

#include <algorithm>

namespace berth::model {
namespace {

// Storage knows nodes by their labels alone: what a term says of the node's name is passed over, as in kube-scheduler
// (CheckNodeAffinity makes its node from labels).
bool any_term_matches(const std::vector<NodeSelectorTerm>& terms, const Labels& node) {
  return std::any_of(terms.begin(), terms.end(), [&](const NodeSelectorTerm& term) { return term.matches(node); });
}

}  // namespace

bool Volume::reachable_from(const Labels& node) const { return !affinity || any_term_matches(*affinity, node); }

bool StorageClass::provisions_on(const Labels& node) const {
  return provisions() && (allowed_topologies.empty() || any_term_matches(allowed_topologies, node));
}

std::string key_of(const StorageObject& object) {
  struct Visitor {
    std::string operator()(const VolumeClaim& o) { return o.key(); }
    std::string operator()(const Volume& o) { return o.name; }
    std::string operator()(const StorageClass& o) { return o.name; }
    std::string operator()(const AttachLimits& o) { return o.node; }
    std::string operator()(const StorageDriver& o) { return o.name; }
    std::string operator()(const StorageCapacity& o) { return o.name; }
  };
  return std::visit(Visitor{}, object);
}

}  // namespace berth::model
