// engine_bench: the engine alone, no I/O: placements per second, cost against cluster size, cold start.
//
// Prints JSON. Seconds are of CPU time: the engine has one thread and waits for nothing. Beside the absolute figures
// stands a fixed calibration kernel (random reads of 64 MiB), timed in the same run, so that runs on different machines
// can be compared.
//
//   build/release/bin/engine_bench [nodes] [pods]
//   build/release/bin/engine_bench cold-start   that alone, several times over
//   build/release/bin/engine_bench preemption   that alone
//   build/release/bin/engine_bench devices   what choosing devices one by one adds to a placement
//   build/release/bin/engine_bench curve     cost of a decision at 100 to 40,000 nodes, each several times
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/calibration.h"
#include "engine/engine.h"
#include "model/devices.h"
#include "policy/registry.h"

namespace berth {
namespace {

// This thread's own CPU time, so that other work on the machine counts less.
double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

model::Node make_node(int i) {
  model::Node node;
  char name[32];
  std::snprintf(name, sizeof name, "node-%05d", i);
  node.name = name;
  node.labels = {{"kubernetes.io/hostname", name},
                 {"nvidia.com/gpu.product", i % 4 == 0 ? "H100" : "A100"},
                 {"topology.kubernetes.io/zone", "zone-" + std::to_string(i % 3)}};
  node.allocatable = {{"cpu", 128'000},
                      {"memory", int64_t{1} << 40},
                      {"pods", 110},
                      {"ephemeral-storage", int64_t{1} << 40},
                      {"nvidia.com/gpu", 8}};
  node.capacity = node.allocatable;
  return node;
}

model::Pod make_pod(int i, std::shared_ptr<const model::SchedulingSpec> spec) {
  model::Pod pod;
  pod.uid = "uid-" + std::to_string(i);
  pod.namespace_name = "default";
  pod.name = "pod-" + std::to_string(i);
  pod.created = Time{i / 100 * 1'000'000'000LL};
  pod.spec = std::move(spec);
  return pod;
}

std::shared_ptr<const model::SchedulingSpec> make_spec(int kind) {
  auto spec = std::make_shared<model::SchedulingSpec>();
  spec->requests = {{"cpu", 1000 + kind}, {"memory", int64_t{4} << 30}, {"pods", 1}, {"nvidia.com/gpu", 1}};
  return spec;
}

// A deployment's pods, which look at one another: "anti-affinity" (a host each), "spread" (over zones), "both" (over
// zones and hosts), "wish" (preferably a host each).
model::Pod make_peer(int i, int deployment, const std::string& kind) {
  const std::string app = "app-" + std::to_string(deployment);
  auto spec = std::make_shared<model::SchedulingSpec>(*make_spec(0));
  model::PeerSelector peers{{"default"}, std::nullopt, {}, false};
  peers.pods.requirements = {{"app", model::NodeSelectorOperator::kIn, {app}}};
  const char* host = "kubernetes.io/hostname";
  if (kind == "anti-affinity") spec->peers.anti_affinity = {{peers, host}};
  if (kind == "wish") spec->peers.preferred = {{-100, {peers, host}}};
  peers.skips_terminating = true;
  model::TopologySpreadConstraint zones, hosts;
  zones.topology_key = "topology.kubernetes.io/zone";
  hosts.topology_key = host;
  zones.peers = hosts.peers = peers;
  if (kind == "spread") spec->peers.spread = {zones};
  if (kind == "both") spec->peers.spread = {zones, hosts};
  model::Pod pod = make_pod(i, std::move(spec));
  pod.labels = std::make_shared<model::Labels>(model::Labels{{"app", app}});
  return pod;
}

struct Run {
  double apply_nodes_s = 0, apply_pods_s = 0, cycle_s = 0;
  size_t placed = 0;
};

Run run(int nodes, int pods, int classes, int bound = 0) {
  engine::Engine engine(policy::default_policies());
  std::vector<std::shared_ptr<const model::SchedulingSpec>> specs;
  for (int i = 0; i < classes; ++i) specs.push_back(make_spec(i));
  Run out;
  engine::NodesReplaced nodes_list;
  for (int i = 0; i < nodes; ++i) nodes_list.nodes.push_back(make_node(i));
  engine::PodsReplaced pods_list;
  for (int i = 0; i < pods + bound; ++i) {
    pods_list.pods.push_back(make_pod(i, specs[i % classes]));
    if (i < bound) pods_list.pods.back().node_name = nodes_list.nodes[i % nodes].name;
  }
  double start = seconds();
  engine.apply(std::move(nodes_list));
  out.apply_nodes_s = seconds() - start;
  start = seconds();
  engine.apply(std::move(pods_list));
  out.apply_pods_s = seconds() - start;
  start = seconds();
  out.placed = engine.run_cycle(Time{1}).decisions.size();
  out.cycle_s = seconds() - start;
  return out;
}

Run run_peers(int nodes, int pods, int deployments, const std::string& kind) {
  engine::Engine engine(policy::default_policies());
  Run out;
  double start = seconds();
  for (int i = 0; i < nodes; ++i) engine.apply(engine::NodeUpserted{make_node(i)});
  out.apply_nodes_s = seconds() - start;
  engine::PodsReplaced list;
  for (int i = 0; i < pods; ++i) list.pods.push_back(make_peer(i, i * deployments / pods, kind));
  start = seconds();
  engine.apply(std::move(list));
  out.apply_pods_s = seconds() - start;
  start = seconds();
  out.placed = engine.run_cycle(Time{1}).decisions.size();
  out.cycle_s = seconds() - start;
  return out;
}

// Every node is full of eight one-GPU pods of low priority. More important pods arrive one by one, each with a spec of
// its own, and ask for two to seven GPUs: those who leave for one are gone before the next comes. "preempt-peers": each
// also keeps pods of its own label off its host, and 50 disruption budgets speak for the pods that are in the way.
Run run_preemption(int nodes, int pods, bool peers) {
  constexpr int kBudgets = 50;
  engine::Engine engine(policy::default_policies());
  engine::NodesReplaced node_list;
  for (int i = 0; i < nodes; ++i) node_list.nodes.push_back(make_node(i));
  engine::PodsReplaced pod_list;
  const auto spec = make_spec(0);
  const auto labels = std::make_shared<model::Labels>(model::Labels{{"app", "low"}});
  for (int i = 0; i < 8 * nodes; ++i) {
    pod_list.pods.push_back(make_pod(i, spec));
    pod_list.pods.back().labels = labels;
    pod_list.pods.back().node_name = node_list.nodes[i / 8].name;
  }
  Run out;
  double start = seconds();
  engine.apply(std::move(node_list));
  out.apply_nodes_s = seconds() - start;
  start = seconds();
  engine.apply(std::move(pod_list));
  for (int i = 0; peers && i < kBudgets; ++i) {
    model::DisruptionBudget budget;
    budget.namespace_name = "default";
    budget.name = "budget-" + std::to_string(i);
    budget.pods.requirements = {{"app", model::NodeSelectorOperator::kIn, {"low"}}};
    budget.allowed = i % 2;
    engine.apply(engine::BudgetUpserted{std::move(budget)});
  }
  out.apply_pods_s = seconds() - start;
  int64_t now = 0;
  start = seconds();
  for (int i = 0; i < pods; ++i) {
    model::Pod pod = peers ? make_peer(8 * nodes + i, i, "anti-affinity") : make_pod(8 * nodes + i, make_spec(0));
    auto own = std::make_shared<model::SchedulingSpec>(*pod.spec);
    own->requests.set("nvidia.com/gpu", 2 + i % 6);
    own->requests.set("cpu", 1000 + i);
    pod.spec = std::move(own);
    pod.priority = 1000;
    engine.apply(engine::PodUpserted{std::move(pod)});
    for (const engine::Decision& decision : engine.run_cycle(Time{++now}).decisions)
      if (decision.kind == engine::DecisionKind::kEvict) engine.apply(engine::PodDeleted{decision.pod_uid});
    for (const engine::Decision& decision : engine.run_cycle(Time{++now}).decisions) {
      if (decision.kind != engine::DecisionKind::kBind) continue;
      engine.apply(engine::BindProgress{decision.pod_uid, engine::BindOutcome::kSucceeded});
      ++out.placed;
    }
  }
  out.cycle_s = seconds() - start;
  return out;
}

nlohmann::json to_json(const char* name, int nodes, int pods, int classes, const Run& run) {
  return {{"name", name},
          {"nodes", nodes},
          {"pods", pods},
          {"classes", classes},
          {"decisions", run.placed},
          {"apply_nodes_s", run.apply_nodes_s},
          {"apply_pods_s", run.apply_pods_s},
          {"cycle_s", run.cycle_s},
          {"placements_per_s", static_cast<double>(run.placed) / run.cycle_s}};
}

int main_with(int nodes, int pods) {
  nlohmann::json out;
  out["calibration_million_reads_per_s"] = bench::calibration_million_reads_per_s();
  auto& runs = out["runs"] = nlohmann::json::array();
  for (const int size : {nodes / 10, nodes, nodes * 4})
    runs.push_back(to_json("placements", size, pods, 1, run(size, std::min(pods, size * 8), 1)));
  for (const int classes : {10, 100, 1000})
    runs.push_back(to_json("classes", nodes, pods, classes, run(nodes, pods, classes)));
  runs.push_back(to_json("cold-start", nodes, 140'000, 20, run(nodes, 70'000, 20, 70'000)));
  for (const char* kind : {"anti-affinity", "spread", "both", "wish"})
    runs.push_back(to_json(kind, nodes / 2, 10'000, 20, run_peers(nodes / 2, 10'000, 20, kind)));
  for (const bool peers : {false, true})
    runs.push_back(
        to_json(peers ? "preempt-peers" : "preempt", nodes / 2, 300, 300, run_preemption(nodes / 2, 300, peers)));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  out["max_rss_mib"] = usage.ru_maxrss / 1024;
  std::printf("%s\n", out.dump(2).c_str());
  return 0;
}

// Half full at the end in each size, so that sizes compare: four one-GPU pods a node; of pods that look at one another,
// two a node in 20 deployments, up to 5,000 nodes.
int curve() {
  constexpr int kRepetitions = 7;
  nlohmann::json out = nlohmann::json::array();
  const auto point = [&](const char* name, int nodes, const auto& once) {
    nlohmann::json us = nlohmann::json::array();
    for (int i = 0; i < kRepetitions; ++i) {
      const Run run = once();
      us.push_back(1e6 * run.cycle_s / static_cast<double>(run.placed));
    }
    out.push_back({{"name", name}, {"nodes", nodes}, {"us_per_decision", std::move(us)}});
  };
  for (const int nodes : {100, 1000, 10'000, 40'000}) point("one GPU", nodes, [&] { return run(nodes, 4 * nodes, 1); });
  for (const char* kind : {"anti-affinity", "spread"})
    for (const int nodes : {100, 1000, 5000}) point(kind, nodes, [&] { return run_peers(nodes, 2 * nodes, 20, kind); });
  std::printf("%s\n", out.dump(1).c_str());
  return 0;
}

int preemption(int nodes, int pods) {
  nlohmann::json out = nlohmann::json::array();
  for (const bool peers : {false, true})
    out.push_back(to_json(peers ? "preempt-peers" : "preempt", nodes, pods, pods, run_preemption(nodes, pods, peers)));
  std::printf("%s\n", out.dump(1).c_str());
  return 0;
}

int cold_start() {
  nlohmann::json out = nlohmann::json::array();
  for (int i = 0; i < 7; ++i)
    out.push_back(to_json("cold-start", 10'000, 140'000, 20, run(10'000, 70'000, 20, 70'000)));
  std::printf("%s\n", out.dump(1).c_str());
  return 0;
}

// Eight devices, all joined through NVSwitches or none, behind two CPUs with two PCIe switches each.
model::NodeDevices make_devices(int count, bool nvlinks) {
  model::NodeDevices node;
  for (int i = 0; i < count; ++i) {
    model::GpuDevice& device = node.devices.emplace_back();
    device.uuid = "GPU-" + std::to_string(i);
    device.numa_node = i * 2 / count;
    device.pcie_root = "root-" + std::to_string(i * 2 / count);
    device.pcie_switch = "switch-" + std::to_string(i * 4 / count);
    for (int peer = 0; nvlinks && peer < count; ++peer)
      if (peer != i) device.nvlinks.emplace_back(static_cast<uint32_t>(peer), model::kNvlinksMax);
  }
  return node;
}

// Nodes are filled with pods of one, two and four GPUs, in turn. `listed`: an agent lists the devices, so that each pod
// gets certain ones, and nodes are compared by how close these are.
Run run_devices(int devices, bool listed, bool nvlinks) {
  constexpr int kNodes = 10'000;
  engine::Engine engine(policy::default_policies());
  std::vector<std::shared_ptr<const model::SchedulingSpec>> specs;
  for (const int gpus : {1, 2, 4}) {
    auto spec = std::make_shared<model::SchedulingSpec>(*make_spec(gpus));
    spec->requests.set("nvidia.com/gpu", gpus);
    specs.push_back(std::move(spec));
  }
  engine::NodesReplaced nodes;
  for (int i = 0; i < kNodes; ++i) {
    model::Node& node = nodes.nodes.emplace_back(make_node(i));
    node.allocatable.set("nvidia.com/gpu", devices);
    node.capacity = node.allocatable;
    node.gpus.resource = model::kWholeGpuResource;
    if (listed) node.devices = make_devices(devices, nvlinks);
  }
  engine::PodsReplaced pods;
  const int count = kNodes * devices * 3 / 7;
  for (int i = 0; i < count; ++i) pods.pods.push_back(make_pod(i, specs[static_cast<size_t>(i) % 3]));
  Run out;
  double start = seconds();
  engine.apply(std::move(nodes));
  out.apply_nodes_s = seconds() - start;
  engine.apply(std::move(pods));
  start = seconds();
  out.placed = engine.run_cycle(Time{1}).decisions.size();
  out.cycle_s = seconds() - start;
  return out;
}

int devices() {
  nlohmann::json out = nlohmann::json::array();
  for (const int devices : {8, 16}) {
    for (const bool nvlinks : {false, true}) {
      double counted_ns = 1e18, listed_ns = 1e18, counted_nodes_s = 1e18, listed_nodes_s = 1e18;
      for (int round = 0; round < 5; ++round) {  // in turn, and the best of each
        const Run counted = run_devices(devices, false, nvlinks), listed = run_devices(devices, true, nvlinks);
        counted_ns = std::min(counted_ns, 1e9 * counted.cycle_s / static_cast<double>(counted.placed));
        listed_ns = std::min(listed_ns, 1e9 * listed.cycle_s / static_cast<double>(listed.placed));
        counted_nodes_s = std::min(counted_nodes_s, counted.apply_nodes_s);
        listed_nodes_s = std::min(listed_nodes_s, listed.apply_nodes_s);
      }
      out.push_back({{"devices", devices},
                     {"nvlinks", nvlinks},
                     {"counted_ns", counted_ns},
                     {"listed_ns", listed_ns},
                     {"ratio", listed_ns / counted_ns},
                     {"counted_nodes_s", counted_nodes_s},
                     {"listed_nodes_s", listed_nodes_s}});
    }
  }
  std::printf("%s\n", out.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "curve") return berth::curve();
  if (argc > 1 && std::string(argv[1]) == "preemption")
    return berth::preemption(argc > 2 ? std::atoi(argv[2]) : 5000, argc > 3 ? std::atoi(argv[3]) : 300);
  if (argc > 1 && std::string(argv[1]) == "devices") return berth::devices();
  if (argc > 1 && std::string(argv[1]) == "cold-start") return berth::cold_start();
  return berth::main_with(argc > 1 ? std::atoi(argv[1]) : 10'000, argc > 2 ? std::atoi(argv[2]) : 80'000);
}
