#include "apps/scheduler/closed_nodes.h"

namespace berth::apps {

void ClosedNodes::close(const PodName& pod, const std::string& node, const model::Node* known) {
  node_of_[pod] = node;
  Closed& closed = nodes_[node];
  closed.pods.insert(pod);
  if (known != nullptr) closed.node = *known;
}

std::optional<model::Node> ClosedNodes::release(const PodName& pod) {
  const auto found = node_of_.find(pod);
  if (found == node_of_.end()) return std::nullopt;
  const auto at = nodes_.find(found->second);
  node_of_.erase(found);
  at->second.pods.erase(pod);
  if (!at->second.pods.empty()) return std::nullopt;
  std::optional<model::Node> node = std::move(at->second.node);
  nodes_.erase(at);
  return node;
}

bool ClosedNodes::withhold(const model::Node& node) {
  const auto at = nodes_.find(node.name);
  if (at == nodes_.end()) return false;
  at->second.node = node;
  return true;
}

void ClosedNodes::forget(const std::string& node) {
  if (const auto at = nodes_.find(node); at != nodes_.end()) at->second.node.reset();
}

void ClosedNodes::forget_all_nodes() {
  for (auto& [name, closed] : nodes_) closed.node.reset();
}

std::vector<ClosedNodes::PodName> ClosedNodes::pods() const {
  std::vector<PodName> out;
  for (const auto& [pod, node] : node_of_) out.push_back(pod);
  return out;
}

}  // namespace berth::apps
