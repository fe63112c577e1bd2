// ClosedNodes: nodes that take no new work because a pod on them cannot be understood, so that what it holds is
// unknown.
//
// To the engine a closed node is not there, as one that is malformed itself; its latest facts are kept here for the
// moment when it opens. Owner thread only. Invariant: a node is closed as long as there is such a pod on it, and no
// longer.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/node.h"

namespace berth::apps {

class ClosedNodes {
 public:
  using PodName = std::pair<std::string, std::string>;  // namespace and name

  // `pod` is on `node` and cannot be understood. `known`: the node, where it is known.
  void close(const PodName& pod, const std::string& node, const model::Node* known);
  // The pod is understood or gone: the node that opens by that, if it is known.
  std::optional<model::Node> release(const PodName& pod);
  // True if the node is closed; its facts are kept then.
  bool withhold(const model::Node& node);
  // The node is gone, or malformed.
  void forget(const std::string& node);
  void forget_all_nodes();

  bool empty() const { return nodes_.empty(); }
  // Pods that keep nodes closed.
  std::vector<PodName> pods() const;

 private:
  struct Closed {
    std::optional<model::Node> node;
    std::set<PodName> pods;
  };
  std::map<std::string, Closed> nodes_;  // by name
  std::map<PodName, std::string> node_of_;
};

}  // namespace berth::apps
