// Nobody waits without a bound for GPUs to be cut for him (design I9): over random streams of lesser pods and Jobs that
// keep the GPUs of a few nodes in use, one that comes before all of them starts once it is due, those have ended that
// ran by then, and the GPUs are cut. BERTH_LONG=1 runs twenty times as many.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "scenario/testing.h"

namespace berth::scenario {
namespace {

using ::testing::IsEmpty;

constexpr int kLongestMinutes = 15;
// Who has waited for so long is due; then what has just been cut for others is used once.
constexpr Duration kBound = Duration::seconds(60 * (10 + kLongestMinutes + kLongestMinutes));

const std::vector<const char*>& profiles() {
  static const std::vector<const char*> all = {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"};
  return all;
}

// Empty: a share.
std::string limits_of(Rng& rng, int gpus) {
  if (rng.chance(15)) return "";
  if (rng.chance(30)) return fmt::format("nvidia.com/gpu: {}", 1 + rng.below(static_cast<uint64_t>(gpus)));
  return fmt::format("nvidia.com/mig-{}: 1", profiles()[rng.below(profiles().size())]);
}

std::string node_text(const std::string& name, int gpus, bool agent) {
  std::string devices;
  for (int i = 0; i < gpus; ++i) devices += fmt::format("{}{{\"uuid\": \"{}{}\"}}", i == 0 ? "" : ", ", name, i);
  if (agent)
    devices = fmt::format(R"(, annotations: {{berth.dev/devices: '{{"version": "v1", "devices": [{}]}}'}})", devices);
  return fmt::format(
      "---\n{{apiVersion: v1, kind: Node, metadata: {{name: {}, labels: {{berth.dev/mig-policy: dynamic, "
      "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB, nvidia.com/gpu.count: \"{}\"}}{}}}, status: {{capacity: {{cpu: "
      "64, memory: 256Gi, pods: 110, nvidia.com/gpu: {}}}}}}}\n",
      name, gpus, agent ? devices : "", gpus);
}

// A pod, or a Job in a queue with quota for everybody.
std::string work_text(const std::string& name, const std::string& limits, int second, int minutes, bool queued,
                      bool declares, bool urgent) {
  const std::string annotations = fmt::format("berth.dev/simulated-runtime: {}m{}{}", minutes,
                                              declares ? fmt::format(", berth.dev/runtime-estimate: {}m", minutes) : "",
                                              limits.empty() ? ", berth.dev/gpu-fraction: '0.6'" : "");
  const std::string spec =
      fmt::format("{{priorityClassName: {}, {}containers: [{{name: c, image: i, resources: {{limits: {{{}}}}}}}]}}",
                  urgent ? "urgent" : "lesser", queued ? "restartPolicy: Never, " : "", limits);
  if (!queued)
    return fmt::format(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {}, annotations: {{berth.dev/simulated-arrival: {}s, "
        "{}}}}}, spec: {}}}\n",
        name, second, annotations, spec);
  return fmt::format(
      "---\n{{apiVersion: batch/v1, kind: Job, metadata: {{name: {}, labels: {{kueue.x-k8s.io/queue-name: team}}, "
      "annotations: {{berth.dev/simulated-arrival: {}s}}}}, spec: {{template: {{metadata: {{annotations: {{{}}}}}, "
      "spec: {}}}}}}}\n",
      name, second, annotations, spec);
}

std::string queue_text() {
  std::string covered = "cpu, nvidia.com/gpu",
              quotas = "{name: cpu, nominalQuota: 999}, {name: nvidia.com/gpu, nominalQuota: 99}";
  for (const char* profile : profiles()) {
    covered += fmt::format(", nvidia.com/mig-{}", profile);
    quotas += fmt::format(", {{name: nvidia.com/mig-{}, nominalQuota: 99}}", profile);
  }
  return fmt::format(
      "---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {{name: "
      "default}}}}\n---\n{{apiVersion: "
      "kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: team}}, spec: {{namespaceSelector: {{}}, "
      "resourceGroups: [{{coveredResources: [{}], flavors: [{{name: default, resources: "
      "[{}]}}]}}]}}}}\n---\n{{apiVersion: "
      "kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{name: team}}, spec: {{clusterQueue: team}}}}\n---\n"
      "{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: urgent}}, value: 10, "
      "preemptionPolicy: "
      "Never}}\n---\n{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: lesser}}, value: 0, "
      "preemptionPolicy: Never}}\n",
      covered, quotas);
}

TEST(KeptGpusProperty, NobodyStarvesBehindThoseWhoUseGpusAsTheyAreCut) {
  const uint64_t streams = histories_to_play(60, 1200);
  uint64_t waited_long = 0;
  for (uint64_t seed = 1; seed <= streams; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const int nodes = 1 + static_cast<int>(rng.below(2)), gpus = 1 + static_cast<int>(rng.below(2));
    std::string text = queue_text();
    for (int i = 0; i < nodes; ++i) text += node_text(i == 0 ? "a" : "b", gpus, rng.chance(50));
    const std::string wanted = limits_of(rng, gpus), used = limits_of(rng, gpus), used_too = limits_of(rng, gpus);
    const uint64_t declare = rng.below(3) * 50, queued = rng.below(3) * 50;
    int at = 0, number = 0;
    const auto lesser = [&](int until) {
      for (; at < until; at += static_cast<int>(rng.below(600)) / (nodes * gpus) + 1)
        text +=
            work_text(fmt::format("s{}", number++), rng.chance(70) ? used : used_too, at,
                      1 + static_cast<int>(rng.below(kLongestMinutes)), rng.chance(queued), rng.chance(declare), false);
    };
    lesser(600);
    text += work_text("w", wanted, at, 5, rng.chance(50), rng.chance(declare), true);
    lesser(3 * 3600);
    const auto cluster = testing::prepare(text, {.check_invariants = true});
    cluster->run_to_end();
    EXPECT_THAT(cluster->broken(), IsEmpty());
    for (const PodReport& pod : cluster->report().pods) {
      ASSERT_TRUE(pod.started.has_value()) << pod.name << ": " << pod.message;
      if (!pod.name.starts_with("w")) continue;
      EXPECT_LE(*pod.started - *pod.submitted, kBound) << wanted << " behind " << used << " and " << used_too;
      waited_long += *pod.started - *pod.submitted > Duration::seconds(600);
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(waited_long, streams / 20);
}

}  // namespace
}  // namespace berth::scenario
