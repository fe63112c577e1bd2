#include "scenario/delivery.h"

#include <absl/container/flat_hash_map.h>

#include <string>
#include <utility>

namespace berth::scenario {
namespace {

std::string subject_of(const engine::Event& event) {
  struct Visitor {
    static std::string storage(model::StorageKind kind, const std::string& key) {
      return "storage " + std::to_string(static_cast<int>(kind)) + " " + key;
    }
    std::string operator()(const engine::NodeUpserted& e) { return "node " + e.node.name; }
    std::string operator()(const engine::NodeDeleted& e) { return "node " + e.name; }
    std::string operator()(const engine::NodeRepartitioning& e) { return "node " + e.name; }
    std::string operator()(const engine::GpusKept& e) { return "node " + e.node; }
    std::string operator()(const engine::PodUpserted& e) { return "pod " + e.pod.uid; }
    std::string operator()(const engine::PodDeleted& e) { return "pod " + e.uid; }
    std::string operator()(const engine::NamespaceUpserted& e) { return "namespace " + e.name; }
    std::string operator()(const engine::StorageUpserted& e) {
      return storage(model::kind_of(e.object), model::key_of(e.object));
    }
    std::string operator()(const engine::StorageDeleted& e) { return storage(e.kind, e.key); }
    std::string operator()(const engine::StorageReplaced& e) { return storage(e.kind, "*"); }
    std::string operator()(const engine::BudgetUpserted& e) { return "budget " + e.budget.key(); }
    std::string operator()(const engine::BudgetDeleted& e) { return "budget " + e.key; }
    std::string operator()(const engine::BudgetsReplaced&) { return "budgets"; }
    std::string operator()(const engine::QueueObjectUpserted&) { return "queues"; }
    std::string operator()(const engine::QueueObjectDeleted&) { return "queues"; }
    std::string operator()(const engine::WorkloadUpserted& e) { return "workload " + e.workload.uid; }
    std::string operator()(const engine::WorkloadAdmitted& e) { return "workload " + e.workload.uid; }
    std::string operator()(const engine::WorkloadEnded& e) { return "workload " + e.uid; }
    std::string operator()(const engine::WorkloadReleased& e) { return "workload " + e.uid; }
    std::string operator()(const engine::OwnerQueued& e) { return "owner " + e.uid; }
    std::string operator()(const engine::WorkloadPodsReady& e) { return "workload " + e.uid; }
    std::string operator()(const engine::WorkloadCheckReported& e) { return "workload " + e.uid; }
    std::string operator()(const engine::EvictionFailed& e) { return "pod " + e.uid; }
    std::string operator()(const engine::BindProgress& e) { return "bind " + e.uid; }
    std::string operator()(const engine::ClockAdvanced&) { return "clock"; }
    std::string operator()(const engine::NodesReplaced&) { return "nodes"; }
    std::string operator()(const engine::PodsReplaced&) { return "pods"; }
  };
  return std::visit(Visitor{}, event);
}

}  // namespace

void shuffle_delivery(std::vector<engine::Event>& events, Rng& rng) {
  std::vector<size_t> order(events.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  absl::flat_hash_map<std::string, std::vector<size_t>> positions;
  for (size_t i = 0; i < order.size(); ++i) positions[subject_of(events[order[i]])].push_back(i);
  std::vector<engine::Event> out(events.size());
  absl::flat_hash_map<std::string, size_t> used;
  for (engine::Event& event : events) {
    const std::string subject = subject_of(event);
    out[positions[subject][used[subject]++]] = std::move(event);
  }
  events = std::move(out);
}

}  // namespace berth::scenario
