#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bridge/to_model.h"
#include "scenario/simulation.h"

namespace berth::scenario {
namespace {

constexpr Duration kGraceDefault = Duration::seconds(30);

}  // namespace

Result<size_t> Simulation::find(const std::string& name) const {
  const auto at = by_name_.find(with_namespace(name));
  if (at == by_name_.end()) return fail(ErrorCode::kNotFound, "no pod is called " + with_namespace(name));
  return at->second;
}

Status Simulation::delete_pod(const std::string& name) {
  BERTH_TRY(found, find(name));
  SimPod& pod = pods_[found];
  if (pod.stage == Stage::kRefused) return fail(ErrorCode::kNotFound, name + " was refused: there is no such pod");
  if (pod.stage == Stage::kWaiting) {
    remove(found);
    return {};
  }
  if (pod.object.metadata.deleted) return fail(ErrorCode::kInvalidInput, name + " is already being deleted");
  delete_gracefully(found);
  return {};
}

void Simulation::delete_gracefully(size_t found) {
  SimPod& pod = pods_[found];
  pod.object.metadata.deleted = now_;
  pod.object.metadata.deletion_grace_s = pod.object.spec.termination_grace_s;
  await_end_of_grace(found);
  tell_pod(pod);
}

// What a kubelet does with a placed pod that is being deleted, from now on: it ends the containers when the grace
// period is over. Finalizers would keep the object, then in a terminal phase; to the scheduler both are the same.
void Simulation::await_end_of_grace(size_t found) {
  const auto grace = pods_[found].object.metadata.deletion_grace_s;
  schedule(now_, grace ? Duration::seconds(std::clamp<int64_t>(*grace, 0, 86'400)) : kGraceDefault, DueKind::kPodGone,
           found);
}

Status Simulation::finish_pod(const std::string& name) {
  BERTH_TRY(found, find(name));
  if (pods_[found].stage != Stage::kRunning) return fail(ErrorCode::kInvalidInput, name + " is not running");
  end(found, "Succeeded", "Completed", false);
  return {};
}

Status Simulation::fail_pod(const std::string& name, const std::string& reason) {
  BERTH_TRY(found, find(name));
  if (pods_[found].stage != Stage::kRunning) return fail(ErrorCode::kInvalidInput, name + " is not running");
  end(found, "Failed", reason, true);
  return {};
}

Status Simulation::lose_node(const std::string& name) {
  agent_.forget(name);
  if (nodes_.erase(name) == 0) return fail(ErrorCode::kNotFound, "no node is called " + name);
  repartitioner_.forget(name);
  end_change(name, false, "the node is gone");
  outbox_.emplace_back(engine::NodeDeleted{name});
  const size_t count = pods_.size();
  for (size_t i = 0; i < count; ++i) {
    if (pods_[i].stage == Stage::kRunning && pods_[i].object.spec.node_name == name) {
      remove(i);
      replace_pod(i);
    }
  }
  return {};
}

Status Simulation::cordon_node(const std::string& name, bool unschedulable) {
  const auto at = nodes_.find(name);
  if (at == nodes_.end()) return fail(ErrorCode::kNotFound, "no node is called " + name);
  at->second.unschedulable = unschedulable;
  outbox_.emplace_back(engine::NodeUpserted{bridge::to_model(at->second, bridge::DeviceKnowledge::kExact)});
  return {};
}

Status Simulation::update(Manifest manifest) {
  if (auto* node = std::get_if<api::Node>(&manifest.object)) {
    const auto at = nodes_.find(node->metadata.name);
    if (at == nodes_.end()) return fail(ErrorCode::kNotFound, "no node is called " + node->metadata.name);
    at->second = *node;
    agent_.put(*node);
    outbox_.emplace_back(engine::NodeUpserted{bridge::to_model(*node, bridge::DeviceKnowledge::kExact)});
    return {};
  }
  if (auto* object = std::get_if<api::Namespace>(&manifest.object)) {
    outbox_.emplace_back(bridge::to_event(*object));
    return {};
  }
  if (is_storage(manifest.object)) {
    storage_.put(manifest.object);
    storage_.reconcile();
    return {};
  }
  if (is_limit(manifest.object)) {
    put_limit(manifest.object);
    return {};
  }
  if (is_queueing(manifest.object)) {
    queues_.put(manifest.object);
    return {};
  }
  auto* pod = std::get_if<api::Pod>(&manifest.object);
  if (pod == nullptr)
    return fail(ErrorCode::kUnsupported, "only pods, nodes, namespaces, limits, storage and queues can be updated");
  BERTH_TRY(found, find(pod_name(*pod)));
  if (pods_[found].stage == Stage::kRefused)
    return fail(ErrorCode::kNotFound, pod_name(*pod) + " was refused: there is no such pod");
  api::Pod& old = pods_[found].object;
  recount(old, false);
  pod->metadata.uid = old.metadata.uid;
  pod->metadata.created = old.metadata.created;
  pod->metadata.owners = old.metadata.owners;
  pod->spec.node_name = old.spec.node_name;
  if (pod->status.phase.empty()) pod->status.phase = old.status.phase;
  old = std::move(*pod);
  recount(old, true);
  tell_pod(pods_[found]);
  return {};
}

void Simulation::plan_bind(const std::string& name, BindFate fate) { planned_[with_namespace(name)].push_back(fate); }

Status Simulation::settle_bind(const std::string& name, bool stored) {
  BERTH_TRY(found, find(name));
  SimPod& pod = pods_[found];
  if (pod.unknown_node.empty()) return fail(ErrorCode::kInvalidInput, "no bind of " + name + " is without an answer");
  const std::string node = std::exchange(pod.unknown_node, "");
  if (pod.stage == Stage::kEnded) return {};  // deleted meanwhile
  if (stored) start(pod, node);
  else outbox_.emplace_back(engine::BindProgress{pod.object.metadata.uid, engine::BindOutcome::kFailed});
  return {};
}

void Simulation::relist() {
  engine::NodesReplaced nodes;
  for (const auto& [name, node] : nodes_)
    nodes.nodes.push_back(bridge::to_model(node, bridge::DeviceKnowledge::kExact));
  engine::PodsReplaced pods;
  for (const SimPod& pod : pods_)
    if (pod.stage != Stage::kEnded && pod.stage != Stage::kRefused)
      pods.pods.push_back(bridge::to_model(pod.object, {}, options_.topology_levels));
  deliver();
  storage_.relist();
  outbox_.emplace_back(std::move(nodes));
  outbox_.emplace_back(std::move(pods));
}

}  // namespace berth::scenario
