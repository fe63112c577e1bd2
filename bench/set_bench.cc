// set_bench: what a cluster gains when waiting pods get their places as a set, and what a cycle costs then.
//
// Nodes of eight GPUs on which two to eight are in use, and pods of one to eight that wait, in so many sizes and
// amounts of CPU, half as many again as there is room for. The same queues are given places one pod after
// the other and as a set, with little work and with much. Prints JSON, means of ten queues; time is of this thread's
// CPU.
//
//   build/release/bin/set_bench [nodes] [pods]
//   build/release/bin/set_bench over-time   pods come and end on 20 nodes: GPUs in use, and how long pods wait
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "policy/registry.h"

namespace berth {
namespace {

constexpr int64_t kGpus = 8;
constexpr int kEnded = 20;

double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

model::Node make_node(int i) {
  model::Node node;
  node.name = "node-" + std::to_string(i);
  node.labels = {{"kubernetes.io/hostname", node.name}};
  node.allocatable = {{"cpu", 128'000}, {"memory", int64_t{1} << 40}, {"pods", 110}, {"nvidia.com/gpu", kGpus}};
  node.capacity = node.allocatable;
  return node;
}

model::Pod make_pod(int i, int64_t gpus, int64_t cores) {
  auto spec = std::make_shared<model::SchedulingSpec>();
  spec->requests = {{"pods", 1}, {"nvidia.com/gpu", gpus}, {"cpu", cores * 1000}};
  model::Pod pod;
  pod.name = "pod-" + std::to_string(i);
  pod.uid = "uid-" + pod.name;
  pod.namespace_name = "default";
  pod.spec = std::move(spec);
  return pod;
}

struct Run {
  double first_s = 0, later_s = 0;  // of the cycle that sees the queue first, and of one after some pods have ended
  int64_t gpus = 0, pods = 0, work = 0;  // of the first

  void add(const Run& other) {
    first_s += other.first_s;
    later_s += other.later_s;
    gpus += other.gpus;
    pods += other.pods;
    work += other.work;
  }
};

Run run(int nodes, int pods, uint64_t classes, uint64_t seed, const engine::SetPackingOptions& sets) {
  engine::Engine engine(policy::default_policies(), {.set_packing = sets});
  Rng rng(seed);
  engine::NodesReplaced node_list;
  engine::PodsReplaced pod_list;
  absl::flat_hash_map<std::string, int64_t> asked;
  for (int i = 0; i < pods; ++i) {
    const auto which = static_cast<int64_t>(rng.below(classes));
    const int64_t gpus = 1 + which % kGpus;
    pod_list.pods.push_back(make_pod(i, gpus, gpus * (8 + which / kGpus)));
    pod_list.pods.back().created = Time{i + 1};
    asked[pod_list.pods.back().uid] = gpus;
  }
  for (int i = 0; i < nodes; ++i) {
    node_list.nodes.push_back(make_node(i));
    const int64_t used = rng.between(2, kGpus);
    pod_list.pods.push_back(make_pod(pods + i, used, used * rng.between(8, 14)));
    pod_list.pods.back().node_name = node_list.nodes.back().name;
  }
  engine.apply(std::move(node_list));
  engine.apply(std::move(pod_list));
  Run out;
  Time now;
  const auto cycle = [&](double& spent_s) {
    const double start = seconds();
    const engine::CycleResult result = engine.run_cycle(now = now + Duration::seconds(1));
    spent_s = seconds() - start;
    return result;
  };
  const engine::CycleResult first = cycle(out.first_s);
  out.work = first.work_used;
  for (const engine::Decision& decision : first.decisions) {
    if (decision.kind != engine::DecisionKind::kBind) continue;
    out.gpus += asked.at(decision.pod_uid);
    ++out.pods;
  }
  for (int i = 0; i < kEnded; ++i) engine.apply(engine::PodDeleted{"uid-pod-" + std::to_string(pods + i)});
  cycle(out.later_s);
  return out;
}

int bench(int nodes, int pods) {
  constexpr uint64_t kQueues = 10;
  nlohmann::json out = nlohmann::json::array();
  for (const uint64_t classes : {8, 24, 80}) {
    for (const int64_t work : {int64_t{0}, engine::SetPackingOptions{}.work_max, int64_t{10'000'000}}) {
      Run sum;
      for (uint64_t seed = 1; seed <= kQueues; ++seed) {
        const Run one = run(nodes, pods, classes, seed, {.enabled = work > 0, .work_max = work});
        sum.add(one);
      }
      out.push_back({{"nodes", nodes},
                     {"pods", pods},
                     {"classes", classes},
                     {"max_work", work},
                     {"gpus", static_cast<double>(sum.gpus) / kQueues},
                     {"placed", static_cast<double>(sum.pods) / kQueues},
                     {"work", static_cast<double>(sum.work) / kQueues},
                     {"first_cycle_ms", 1e3 * sum.first_s / kQueues},
                     {"later_cycle_ms", 1e3 * sum.later_s / kQueues}});
    }
  }
  std::printf("%s\n", out.dump(1).c_str());
  return 0;
}

struct OverTime {
  double in_use_percent = 0, wait_mean_min = 0, wait_p99_min = 0;
};

// Pods come, run for an hour on average and end; together they ask for `load` times what the nodes can give until the
// last one has come, and until then GPUs in use are counted.
OverTime run_over_time(double load, uint64_t seed, const engine::SetPackingOptions& sets) {
  constexpr int kNodes = 20, kPods = 600;
  constexpr int64_t kSizes[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 8, 8, 8};
  engine::Engine engine(policy::default_policies(), {.set_packing = sets});
  for (int i = 0; i < kNodes; ++i) engine.apply(engine::NodeUpserted{make_node(i)});
  Rng rng(seed);
  std::vector<std::pair<int64_t, double>> pods;  // GPUs, hours
  double asked = 0;
  for (int i = 0; i < kPods; ++i) {
    const double uniform = (static_cast<double>(rng.below(1 << 20)) + 1) / (1 << 20);
    pods.emplace_back(kSizes[rng.below(std::size(kSizes))], 1.0 / 12 - std::log(uniform));
    asked += static_cast<double>(pods.back().first) * pods.back().second;
  }
  const double span = asked / (kNodes * kGpus) / load;
  std::vector<double> came(kPods), waits;
  std::multimap<double, std::pair<int, bool>> events;  // by hour: which pod, and whether it comes or ends
  for (int i = 0; i < kPods; ++i) {
    came[i] = span * static_cast<double>(rng.below(1 << 20)) / (1 << 20);
    events.emplace(came[i], std::pair(i, true));
  }
  double in_use = 0;
  while (!events.empty()) {
    const auto [hour, event] = *events.begin();
    events.erase(events.begin());
    const Time now{static_cast<int64_t>(hour * 3.6e12)};
    if (event.second) {
      model::Pod pod = make_pod(event.first, pods[event.first].first, 8 * pods[event.first].first);
      pod.created = now;
      engine.apply(engine::PodUpserted{std::move(pod)});
    } else {
      engine.apply(engine::PodDeleted{"uid-pod-" + std::to_string(event.first)});
    }
    for (const engine::Decision& decision : engine.run_cycle(now).decisions) {
      if (decision.kind != engine::DecisionKind::kBind) continue;
      const int i = std::atoi(decision.pod_name.c_str() + std::size("pod-") - 1);
      const double ends = hour + pods[i].second;
      events.emplace(ends, std::pair(i, false));
      waits.push_back(hour - came[i]);
      in_use += static_cast<double>(pods[i].first) * std::max(0.0, std::min(ends, span) - std::min(hour, span));
    }
  }
  std::sort(waits.begin(), waits.end());
  const double mean = std::accumulate(waits.begin(), waits.end(), 0.0) / static_cast<double>(waits.size());
  return {100 * in_use / (span * kNodes * kGpus), 60 * mean, 60 * waits[waits.size() * 99 / 100]};
}

int over_time() {
  constexpr uint64_t kDraws = 30;
  nlohmann::json out = nlohmann::json::array();
  for (const double load : {1.0, 1.2}) {
    for (const int64_t bound_min : {0, 10, 360}) {
      OverTime sum;
      for (uint64_t seed = 1; seed <= kDraws; ++seed) {
        const OverTime one =
            run_over_time(load, seed, {.enabled = bound_min > 0, .head_bound = Duration::seconds(60 * bound_min)});
        sum.in_use_percent += one.in_use_percent / kDraws;
        sum.wait_mean_min += one.wait_mean_min / kDraws;
        sum.wait_p99_min += one.wait_p99_min / kDraws;
      }
      out.push_back({{"load", load},
                     {"head_bound_min", bound_min},
                     {"in_use_percent", sum.in_use_percent},
                     {"wait_mean_min", sum.wait_mean_min},
                     {"wait_p99_min", sum.wait_p99_min}});
    }
  }
  std::printf("%s\n", out.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "over-time") return berth::over_time();
  return berth::bench(argc > 1 ? std::atoi(argv[1]) : 1000, argc > 2 ? std::atoi(argv[2]) : 1000);
}
