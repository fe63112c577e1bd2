// Properties of dynamic MIG over random streams of pods that ask for slices and whole GPUs: a node whose GPUs are in
// use is never cut, nor, where an agent tells the devices, a device that is; nothing is sold that is not there, whoever
// fits on an idle node runs in the end, and a node is not cut again unless something has happened since that was
// decided, and who comes first has an idle node cut rather than given away. BERTH_LONG=1 runs twenty times as many.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/rng.h"
#include "base/testing.h"
#include "scenario/testing.h"

namespace berth::scenario {
namespace {

using ::testing::AnyOf;
using ::testing::IsEmpty;

struct Gpu {
  const char* product;
  std::vector<const char*> profiles;
};

const std::vector<Gpu>& gpus() {
  static const std::vector<Gpu> all = {
      {"NVIDIA-A100-SXM4-40GB", {"1g.5gb", "1g.5gb.me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}},
      {"NVIDIA-A100-SXM4-80GB", {"1g.10gb", "1g.10gb.me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}},
      {"NVIDIA-H100-80GB-HBM3", {"1g.10gb", "1g.10gb.me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}},
      {"NVIDIA-H200", {"1g.18gb", "1g.18gb.me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"}},
      {"NVIDIA-B200", {"1g.23gb", "1g.23gb.me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"}}};
  return all;
}

constexpr int kGpusPerNode = 2;

// `agent`: one tells the devices of the node.
std::string node_text(const std::string& name, const Gpu& gpu, const std::string& takes, bool agent) {
  const std::string devices =
      agent ? R"(, berth.dev/devices: '{"version": "v1", "devices": [{"uuid": "x"}, {"uuid": "y"}]}')" : "";
  return fmt::format(
      "---\n{{apiVersion: v1, kind: Node, metadata: {{name: {}, labels: {{berth.dev/mig-policy: dynamic, "
      "nvidia.com/gpu.product: {}, nvidia.com/gpu.count: \"{}\"}}, annotations: {{berth.dev/simulated-repartition: "
      "{}{}}}}}, status: {{capacity: {{cpu: 16, memory: 64Gi, pods: 20, nvidia.com/gpu: {}}}}}}}\n",
      name, gpu.product, kGpusPerNode, takes, devices, kGpusPerNode);
}

std::string pod_text(int number, const std::string& limits, Rng& rng) {
  const uint64_t priority = rng.below(3);
  const char* share = limits.empty() ? ", berth.dev/gpu-fraction: '0.4'" : "";
  return fmt::format(
      "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: p{}-{}, annotations: {{berth.dev/simulated-arrival: {}m, "
      "berth.dev/simulated-runtime: {}m{}}}}}, spec: {{priorityClassName: p{}, containers: [{{name: c, image: i, "
      "resources: "
      "{{requests: {{cpu: {}}}, limits: {{{}}}}}}}]}}}}\n",
      priority, number, rng.below(60), 1 + rng.below(30), share, priority, 1 + rng.below(6), limits);
}

// Whatever is asked for fits on an idle node of the GPU, alone. Nothing: a share.
std::string limits_of(const Gpu& gpu, Rng& rng) {
  if (rng.chance(15)) return "";
  if (rng.chance(20)) return fmt::format("nvidia.com/gpu: {}", 1 + rng.below(kGpusPerNode));
  const std::string first = gpu.profiles[rng.below(7)], second = gpu.profiles[rng.below(7)];
  std::string out = fmt::format("nvidia.com/mig-{}: {}", first, 1 + rng.below(2));
  if (first != second && !first.starts_with("7g") && !first.starts_with("4g") && rng.chance(20))
    out = fmt::format("nvidia.com/mig-{}: 1, nvidia.com/mig-{}: 1", first, second);
  return out;
}

// `keeps`: nodes and GPUs for who has waited long.
std::unique_ptr<Simulation> run(std::string text, bool keeps = true) {
  for (int p = 0; p < 3; ++p)
    text += fmt::format(
        "---\n{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: p{}}}, value: {}}}\n", p, p);
  SimulationOptions options{.check_invariants = true};
  options.engine.reservations.enabled = keeps;
  auto cluster = testing::prepare(text, std::move(options));
  cluster->run_to_end();
  return cluster;
}

// Whether the world has changed in between: a pod or workload came, started or ended. Those that come at one moment are
// told apart by nanoseconds.
bool something_happened(const Report& report, Time from, Time to) {
  to = to + Duration::seconds(1);
  const auto within = [&](const std::optional<Time>& time) { return time && *time >= from && *time <= to; };
  const auto pod_did = [&](const PodReport& pod) {
    return within(pod.submitted) || within(pod.started) || within(pod.finished);
  };
  const auto workload_did = [&](const WorkloadReport& workload) {
    return within(workload.submitted) || within(workload.admitted) || within(workload.finished);
  };
  return std::ranges::any_of(report.pods, pod_did) || std::ranges::any_of(report.workloads, workload_did);
}

// Whether another node that is to be cut with this one takes longer: then this one may be of use to others meanwhile.
bool waits_for_another(const Report& report, const RepartitionReport& first, Time until) {
  return std::ranges::any_of(report.repartitions, [&](const RepartitionReport& cut) {
    return cut.node != first.node && cut.begun == first.begun && *cut.ended > until;
  });
}

// `once`: no node is cut anew while nothing happens.
void expect_sound(const Simulation& cluster, const Report& report, bool once = true) {
  EXPECT_THAT(cluster.broken(), IsEmpty());
  std::map<std::string, const RepartitionReport*> last;
  for (const RepartitionReport& cut : report.repartitions) {
    ASSERT_TRUE(cut.ended.has_value());
    model::Node node = cluster.engine().state().node(cluster.engine().state().find_node(cut.node)).node;
    node.capacity = node.allocatable = cut.resources;
    node.devices.devices.clear();
    EXPECT_TRUE(mig::devices_of(node).has_value()) << "no GPUs can be cut so";
    const RepartitionReport*& before = last[cut.node];
    if (once && before != nullptr && !before->given_up) {
      EXPECT_TRUE(something_happened(report, before->begun + Duration{1}, cut.begun) ||
                  waits_for_another(report, *before, cut.begun))
          << cut.node << " is cut twice";
    }
    before = &cut;
  }
  for (const PodReport& pod : report.pods)
    EXPECT_THAT(pod.ended, AnyOf("Succeeded", "Preempted", "Deleted")) << pod.name << ": " << pod.message;
}

// Whether some pod used GPUs of the node when that was cut.
bool cut_beside_others(const Report& report, const RepartitionReport& cut) {
  return std::any_of(report.pods.begin(), report.pods.end(), [&](const PodReport& pod) {
    return pod.node == cut.node && pod.started && *pod.started < cut.begun &&
           (!pod.finished || *pod.finished > cut.begun);
  });
}

// Whether the pod comes before the other one in the queue's order. Names are "p<priority>-<number>", and of those that
// come together the one with the lower number is there first.
bool before(const PodReport& a, const PodReport& b) {
  const auto key = [](const PodReport& pod) {
    return std::tuple(-pod.name[1], pod.submitted, std::stoi(pod.name.substr(3)));
  };
  return key(a) < key(b);
}

// Whether nothing was being cut then, and the node could have been: it was idle, and its last change had been over for
// a minute. Those that start at the same moment and come before `pod` have made it busy, and so have those that have to
// leave only then.
bool could_be_cut(const Report& report, const PodReport& pod) {
  const Time now = *pod.started;
  const bool busy = std::ranges::any_of(report.pods, [&](const PodReport& other) {
    const bool there =
        !other.finished || *other.finished > now || (*other.finished == now && other.ended == "Preempted");
    return &other != &pod && other.node == pod.node && other.started && there &&
           (*other.started < now || (*other.started == now && before(other, pod)));
  });
  return !busy && std::ranges::none_of(report.repartitions, [&](const RepartitionReport& cut) {
    const Duration rest = Duration::seconds(cut.given_up ? 100'000 : 60);
    return cut.begun <= now && (*cut.ended >= now || (cut.node == pod.node && *cut.ended + rest > now));
  });
}

// How many of those that started could have been in somebody's way: whoever waits and comes before has an idle node cut
// rather than have it given away; which holds where no agent has other devices of it cut.
int64_t expect_order(const Report& report) {
  int64_t looked_at = 0;
  for (const PodReport& pod : report.pods) {
    if (!pod.started || !pod.nominated_node.empty() || !could_be_cut(report, pod)) continue;
    ++looked_at;
    for (const PodReport& other : report.pods) {
      const bool waits = *other.submitted <= *pod.started && (!other.started || *other.started > *pod.started) &&
                         other.nominated_node.empty();
      if (waits && before(other, pod))
        ADD_FAILURE() << pod.name << " takes " << pod.node << " at " << format_duration(*pod.started - Time{})
                      << ", which could have been cut for " << other.name;
    }
  }
  return looked_at;
}

TEST(RepartitionProperty, WhoComesFirstHasAnIdleNodeCutRatherThanGivenAway) {
  const uint64_t streams = histories_to_play(100, 2000);
  uint64_t looked_at = 0;
  for (uint64_t seed = 1; seed <= streams; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Gpu& gpu = gpus()[rng.below(gpus().size())];
    std::string text = node_text("a", gpu, "30s", false);
    if (rng.chance(60)) text += node_text("b", gpu, "2m", false);
    const auto pods = static_cast<int>(5 + rng.below(25));
    for (int i = 0; i < pods; ++i) text += pod_text(i, limits_of(gpu, rng), rng);
    looked_at += expect_order(run(text)->report());
    looked_at += expect_order(run(text, false)->report());
    if (HasFailure()) break;
  }
  EXPECT_GT(looked_at, streams);
}

// One Job after the other, of which some ask for what cannot be had, and are gone after a minute.
TEST(RepartitionProperty, WhoIsGoneKeepsNobodyWaiting) {
  const uint64_t streams = histories_to_play(100, 2000);
  for (uint64_t seed = 1; seed <= streams; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Gpu& gpu = gpus()[rng.below(gpus().size())];
    std::string text = node_text("a", gpu, "30s", rng.chance(50));
    for (uint64_t i = 0, jobs = 2 + rng.below(5); i < jobs; ++i) {
      const bool vain = rng.chance(50), much_cpu = rng.chance(50);
      const std::string limits = vain && !much_cpu
                                     ? fmt::format("nvidia.com/mig-{}: {}", gpu.profiles.back(), kGpusPerNode + 1)
                                     : fmt::format("nvidia.com/mig-{}: 1", gpu.profiles[rng.below(7)]);
      text += fmt::format(
          "---\n{{apiVersion: batch/v1, kind: Job, metadata: {{name: {}-{}, annotations: "
          "{{berth.dev/simulated-arrival: "
          "{}m}}}}, spec: {{activeDeadlineSeconds: {}, template: {{metadata: {{annotations: "
          "{{berth.dev/simulated-runtime: 2m}}}}, spec: {{restartPolicy: Never, containers: [{{name: c, image: i, "
          "resources: {{requests: {{cpu: {}}}, limits: {{{}}}}}}}]}}}}}}}}\n",
          vain ? "vain" : "good", i, 10 * i, vain ? 60 : 100'000, vain && much_cpu ? 99 : 1, limits);
    }
    const auto cluster = run(text);
    EXPECT_THAT(cluster->broken(), IsEmpty());
    for (const PodReport& pod : cluster->report().pods) {
      if (pod.name.starts_with("vain")) continue;
      ASSERT_TRUE(pod.started.has_value()) << pod.name << ": " << pod.message;
      EXPECT_LE(*pod.started - *pod.submitted, Duration::seconds(90)) << pod.name;
    }
    if (HasFailure()) break;
  }
}

// Two queues of a cohort that have enough, together, of each for any one Job of two pods; `least` for more.
std::string queues_text(const Gpu& gpu, Rng& rng, uint64_t least = 1) {
  std::string out = "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}\n";
  for (const char* name : {"red", "blue"}) {
    std::string covered = "cpu, nvidia.com/gpu";
    std::string quotas = fmt::format("{{name: cpu, nominalQuota: 99}}, {{name: nvidia.com/gpu, nominalQuota: {}}}",
                                     least + rng.below(3));
    for (const char* profile : gpu.profiles) {
      covered += fmt::format(", nvidia.com/mig-{}", profile);
      quotas += fmt::format(", {{name: nvidia.com/mig-{}, nominalQuota: {}}}", profile, least + rng.below(3));
    }
    out += fmt::format(
        "---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: {}}}, spec: "
        "{{namespaceSelector: {{}}, cohortName: all, queueingStrategy: {}, resourceGroups: [{{coveredResources: [{}], "
        "flavors: [{{name: default, resources: [{}]}}]}}]}}}}\n---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: "
        "LocalQueue, metadata: {{name: {}}}, spec: {{clusterQueue: {}}}}}\n",
        name, rng.chance(30) ? "StrictFIFO" : "BestEffortFIFO", covered, quotas, name, name);
  }
  return out;
}

// Of one or two pods, that fit on an idle node together.
std::string job_text(int number, const Gpu& gpu, Rng& rng) {
  const bool pair = rng.chance(30);
  const std::string limits = !pair            ? limits_of(gpu, rng)
                             : rng.chance(20) ? "nvidia.com/gpu: 1"
                                              : fmt::format("nvidia.com/mig-{}: 1", gpu.profiles[rng.below(7)]);
  const char* share = limits.empty() ? ", berth.dev/gpu-fraction: '0.4'" : "";
  return fmt::format(
      "---\n{{apiVersion: batch/v1, kind: Job, metadata: {{name: j{}, labels: {{kueue.x-k8s.io/queue-name: {}}}, "
      "annotations: {{berth.dev/simulated-arrival: {}m}}}}, spec: {{parallelism: {}, completions: {}, template: "
      "{{metadata: {{annotations: {{berth.dev/simulated-runtime: {}m{}}}}}, spec: {{restartPolicy: Never, "
      "priorityClassName: p{}, containers: [{{name: c, image: i, resources: {{requests: {{cpu: {}}}, limits: "
      "{{{}}}}}}}]}}}}}}}}\n",
      number, rng.chance(50) ? "red" : "blue", rng.below(60), pair ? 2 : 1, pair ? 2 : 1, 1 + rng.below(30), share,
      rng.below(3), 1 + rng.below(6), limits);
}

TEST(RepartitionProperty, WorkInQueuesIsServedBesidePods) {
  const uint64_t streams = histories_to_play(100, 2000);
  uint64_t cuts = 0, admitted = 0;
  for (uint64_t seed = 1; seed <= streams; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Gpu& gpu = gpus()[rng.below(gpus().size())];
    std::string text = node_text("a", gpu, "30s", rng.chance(50)) + queues_text(gpu, rng);
    if (rng.chance(60)) text += node_text("b", gpu, "2m", rng.chance(50));
    const auto all = static_cast<int>(1 + rng.below(25));
    for (int i = 0; i < all; ++i)
      text += rng.chance(60) ? job_text(i, gpu, rng) : pod_text(i, limits_of(gpu, rng), rng);
    const auto cluster = run(text);
    const Report report = cluster->report();
    expect_sound(*cluster, report);
    cuts += static_cast<int64_t>(report.repartitions.size());
    for (const WorkloadReport& workload : report.workloads) {
      EXPECT_EQ(workload.state, "Finished") << workload.name << ": " << workload.message;
      admitted += workload.admitted.has_value();
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(cuts, streams);
  EXPECT_GT(admitted, streams);
}

// Of as many pods as all nodes have GPUs, at most, in a queue with enough quota; `dynamic` of the GPUs may be cut.
std::string gang_text(int number, const Gpu& gpu, uint64_t gpus, uint64_t dynamic, Rng& rng) {
  const bool whole = rng.chance(60);
  const uint64_t pods = 1 + rng.below(whole ? gpus : dynamic);
  const std::string limits =
      whole ? "nvidia.com/gpu: 1" : fmt::format("nvidia.com/mig-{}: 1", gpu.profiles[rng.below(7)]);
  return fmt::format(
      "---\n{{apiVersion: batch/v1, kind: Job, metadata: {{name: j{}, labels: {{kueue.x-k8s.io/queue-name: {}}}, "
      "annotations: {{berth.dev/simulated-arrival: {}m}}}}, spec: {{parallelism: {}, completions: {}, template: "
      "{{metadata: {{annotations: {{berth.dev/simulated-runtime: {}m}}}}, spec: {{restartPolicy: Never, "
      "priorityClassName: p{}, containers: [{{name: c, image: i, resources: {{requests: {{cpu: 1}}, limits: "
      "{{{}}}}}}}]}}}}}}}}\n",
      number, rng.chance(50) ? "red" : "blue", rng.below(60), pods, pods, 1 + rng.below(30), rng.below(3), limits);
}

// Their pods are on several nodes, of which some may not be cut.
TEST(RepartitionProperty, GangsOverSeveralNodesAreServed) {
  const uint64_t streams = histories_to_play(100, 2000);
  uint64_t cuts = 0, spread = 0;
  for (uint64_t seed = 1; seed <= streams; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Gpu& gpu = gpus()[rng.below(gpus().size())];
    std::string text = node_text("a", gpu, "30s", rng.chance(50)) + queues_text(gpu, rng, 99);
    uint64_t dynamic = kGpusPerNode, all = kGpusPerNode;
    if (rng.chance(60)) {
      text += node_text("b", gpu, "2m", rng.chance(50));
      dynamic += kGpusPerNode, all += kGpusPerNode;
    }
    if (rng.chance(60)) {
      constexpr std::string_view kDynamic = "berth.dev/mig-policy: dynamic, ";
      std::string fixed = node_text("s", gpu, "30s", false);
      text += fixed.erase(fixed.find(kDynamic), kDynamic.size());
      all += kGpusPerNode;
    }
    const auto jobs = static_cast<int>(1 + rng.below(15));
    for (int i = 0; i < jobs; ++i) text += rng.chance(80) ? gang_text(i, gpu, all, dynamic, rng) : pod_text(i, "", rng);
    const auto cluster = run(text);
    const Report report = cluster->report();
    expect_sound(*cluster, report, false);  // one of several may be done early, and be of use to others besides
    cuts += static_cast<int64_t>(report.repartitions.size());
    EXPECT_LE(std::ssize(report.repartitions), 4 * jobs);
    for (const WorkloadReport& workload : report.workloads)
      EXPECT_EQ(workload.state, "Finished") << workload.name << ": " << workload.message;
    std::map<std::string, std::set<std::string>> nodes;
    for (const PodReport& pod : report.pods)
      if (pod.started && pod.owner.starts_with("Job")) nodes[pod.owner].insert(pod.node);
    spread += std::ranges::count_if(nodes, [](const auto& owner) { return owner.second.size() > 1; });
    if (HasFailure()) break;
  }
  EXPECT_GT(cuts, streams);
  EXPECT_GT(spread, streams);
}

TEST(RepartitionProperty, HoldsOverRandomStreams) {
  const uint64_t streams = histories_to_play(100, 2000);
  uint64_t cuts = 0, slow_cuts = 0, beside = 0;
  for (uint64_t seed = 1; seed <= streams; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Gpu& gpu = gpus()[rng.below(gpus().size())];
    const bool slow = rng.chance(20);  // one of the nodes is never done in time
    std::string text = node_text("a", gpu, "30s", rng.chance(50));
    if (rng.chance(60)) text += node_text("b", gpu, slow ? "15m" : "2m", rng.chance(50));
    const auto pods = static_cast<int>(1 + rng.below(25));
    for (int i = 0; i < pods; ++i) text += pod_text(i, limits_of(gpu, rng), rng);
    const auto cluster = run(text);
    const Report report = cluster->report();
    expect_sound(*cluster, report);
    cuts += static_cast<int64_t>(report.repartitions.size());
    for (const RepartitionReport& cut : report.repartitions) {
      slow_cuts += cut.given_up;
      beside += cut_beside_others(report, cut);
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(cuts, streams);
  EXPECT_GT(slow_cuts, 0);
  EXPECT_GT(beside, 0) << "no device was cut while the other was in use";
}

}  // namespace
}  // namespace berth::scenario
