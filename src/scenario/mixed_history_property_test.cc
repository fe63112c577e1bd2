// Properties of histories in which all kinds of work meet: gangs that are to be in one rack, MIG slices of nodes that
// are cut for them, shares of a GPU, pods that name no queue, work that is stopped in its time or is not ready in time,
// in a tree of cohorts. They come to their end, everybody who could run alone has, no quota is lost and no invariant
// broken. BERTH_LONG=1 runs many more.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/testing.h"
#include "scenario/history_testing.h"

namespace berth::scenario {
namespace {

constexpr const char* kApi = testing::kQueueApi;
constexpr const char* kResources[] = {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb", "cpu"};

std::string node_text(uint64_t number, Rng& rng) {
  std::string labels =
      fmt::format("cloud.provider.com/topology-rack: r{}, kind: {}", number % 3, number % 2 ? "g" : "f");
  const uint64_t gpus = 4 << rng.below(2);
  std::string annotations;
  if (rng.chance(50)) {
    labels += fmt::format(
        ", berth.dev/mig-policy: dynamic, nvidia.com/mig.strategy: mixed, nvidia.com/gpu.product: "
        "NVIDIA-A100-SXM4-40GB, nvidia.com/gpu.count: \"{}\"",
        gpus);
    if (rng.chance(50)) {
      std::vector<std::string> devices;
      for (uint64_t i = 0; i < gpus; ++i) devices.push_back(fmt::format("{{\"uuid\": \"GPU-{}-{}\"}}", number, i));
      annotations = fmt::format(", annotations: {{berth.dev/devices: '{{\"version\": \"v1\", \"devices\": [{}]}}'}}",
                                fmt::join(devices, ", "));
    }
  }
  return fmt::format(
      "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{}, labels: {{{}}}{}}}, status: {{capacity: {{cpu: 64, "
      "memory: 512Gi, pods: 110, nvidia.com/gpu: {}}}}}}}\n",
      number, labels, annotations, gpus);
}

std::string queue_text(uint64_t number, Rng& rng) {
  constexpr const char* kWithin[] = {"LowerPriority", "LowerOrNewerEqualPriority", "Never"};
  constexpr const char* kReclaim[] = {"Any", "LowerPriority", "Never"};
  std::string flavors;
  for (const char* flavor : {"f", "g"}) {
    if (flavor[0] == 'g' && rng.chance(40)) continue;
    std::string resources;
    for (const char* resource : kResources)
      resources += fmt::format("{}{{name: {}, nominalQuota: {}{}}}", resources.empty() ? "" : ", ", resource,
                               4 * rng.below(4), rng.chance(20) ? ", borrowingLimit: 4" : "");
    flavors += fmt::format("{}{{name: {}, resources: [{}]}}", flavors.empty() ? "" : ", ", flavor, resources);
  }
  const char* reclaim = kReclaim[rng.below(3)];
  const bool while_borrowing = rng.chance(30) && std::string_view(reclaim) != "Never";
  return fmt::format(
      "---\n{{{0}: ClusterQueue, metadata: {{name: q{1}{11}}}, spec: {{cohortName: c{2}, namespaceSelector: {{}}, "
      "queueingStrategy: {3}, flavorFungibility: {{whenCanBorrow: {4}, whenCanPreempt: {5}{12}}}, preemption: "
      "{{withinClusterQueue: {6}, reclaimWithinCohort: {7}{13}}}{8}, resourceGroups: [{{coveredResources: [{9}], "
      "flavors: "
      "[{10}]}}]}}}}\n---\n{{{0}: LocalQueue, metadata: {{name: q{1}}}, spec: {{clusterQueue: q{1}}}}}\n",
      kApi, number, rng.below(2), rng.chance(30) ? "StrictFIFO" : "BestEffortFIFO",
      rng.chance(50) ? "Borrow" : "TryNextFlavor", rng.chance(50) ? "Preempt" : "TryNextFlavor", kWithin[rng.below(3)],
      reclaim, rng.chance(20) ? ", admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}" : "",
      fmt::join(kResources, ", "), flavors, rng.chance(40) ? ", annotations: {berth.dev/minimum-runtime: 8m}" : "",
      rng.chance(20) ? ", preference: PreemptionOverBorrowing" : "",
      while_borrowing ? ", borrowWithinCohort: {policy: LowerPriority}" : "");
}

// What each pod asks for: annotations of the template, and limits.
struct Asks {
  std::string annotations, limits;
};

Asks asks(uint64_t pods, Rng& rng) {
  Asks out;
  switch (rng.below(8)) {
    case 0: return {", berth.dev/gpu-fraction: \"0.5\"", ""};
    case 1: return {", berth.dev/gpu-fraction: \"0.3\"", ""};
    case 2: out.limits = fmt::format("nvidia.com/mig-1g.5gb: {}", 1 + rng.below(3)); break;
    case 3: out.limits = "nvidia.com/mig-3g.20gb: 1"; break;
    default: out.limits = fmt::format("nvidia.com/gpu: {}", 1 << rng.below(4));
  }
  constexpr const char* kTogether[] = {"required=rack", "preferred=rack", "apart-preferred=host",
                                       "required=rack,apart-required=host"};
  if (pods > 1 && rng.chance(40))
    out.annotations = fmt::format(", berth.dev/topology: \"{}\"", kTogether[rng.below(4)]);
  return out;
}

std::string job_text(uint64_t number, uint64_t queues, uint64_t minutes, Rng& rng) {
  const uint64_t pods = 1 + rng.below(4);
  const bool queued = !rng.chance(15);
  std::string labels = fmt::format("app: j{}", number),
              notes = fmt::format("berth.dev/simulated-arrival: {}m", rng.below(minutes));
  if (queued)
    labels += fmt::format(", kueue.x-k8s.io/queue-name: q{}, kueue.x-k8s.io/priority-class: p{}", rng.below(queues),
                          rng.below(3));
  if (queued && rng.chance(15))
    labels += fmt::format(", kueue.x-k8s.io/max-exec-time-seconds: \"{}\"", 600 * (1 + rng.below(5)));
  if (rng.chance(50)) notes += fmt::format(", berth.dev/runtime-estimate: {}m", 5 + rng.below(90));
  if (queued && pods > 1 && rng.chance(25))
    notes += fmt::format(", kueue.x-k8s.io/job-min-parallelism: \"{}\"", 1 + rng.below(pods - 1));
  const Asks each = asks(pods, rng);
  return fmt::format(
      "---\n{{apiVersion: batch/v1, kind: Job, metadata: {{name: j{}, labels: {{{}}}, annotations: {{{}}}}}, spec: "
      "{{parallelism: {}, completions: {}, template: {{metadata: {{annotations: {{berth.dev/simulated-runtime: "
      "{}m{}{}}}}}, spec: {{restartPolicy: Never, terminationGracePeriodSeconds: {}, containers: [{{name: c, image: i, "
      "resources: {{limits: {{{}}}, requests: {{cpu: {}}}}}}}]}}}}}}}}\n",
      number, labels, notes, pods, pods, 1 + rng.below(60),
      rng.chance(10) ? fmt::format(", berth.dev/simulated-ready: {}m", rng.below(30)) : "", each.annotations,
      rng.chance(50) ? 0 : 60, each.limits, 1 + rng.below(3));
}

testing::History mixed(Rng& rng) {
  testing::History out;
  for (const char* flavor : {"f", "g"})
    out.cluster +=
        fmt::format("---\n{{{}: ResourceFlavor, metadata: {{name: {}}}, spec: {{nodeLabels: {{kind: {}}}}}}}\n", kApi,
                    flavor, flavor);
  for (int i = 0; i < 2; ++i)
    out.cluster += fmt::format("---\n{{{}: Cohort, metadata: {{name: c{}}}, spec: {{parentName: all}}}}\n", kApi, i);
  for (int i = 0; i < 3; ++i)
    out.cluster += fmt::format("---\n{{{}: WorkloadPriorityClass, metadata: {{name: p{}}}, value: {}}}\n", kApi, i, i);
  const uint64_t nodes = 2 + rng.below(6);
  for (uint64_t i = 0; i < nodes; ++i) out.cluster += node_text(i, rng);
  const uint64_t queues = 2 + rng.below(4);
  for (uint64_t i = 0; i < queues; ++i) out.cluster += queue_text(i, rng);
  const uint64_t jobs = 15 * (1 + rng.below(3)), minutes = 60 * (1 + rng.below(3));
  for (uint64_t i = 0; i < jobs; ++i) out.jobs.push_back(job_text(i, queues, minutes, rng));
  return out;
}

engine::EngineOptions options_of(uint64_t seed) {
  engine::EngineOptions out;
  out.reservations.enabled = seed % 2 == 0;
  if (seed % 3 == 0) out.admission.fair = quota::FairRules{quota::FairRule::kLessThanOrEqualToFinalShare};
  if (seed % 5 == 0) {
    out.admission.pods_ready.enabled = true;
    out.admission.pods_ready.timeout = Duration::seconds(600);
    out.admission.pods_ready.backoff_limit = 2;
  }
  return out;
}

bool is_over(const WorkloadReport& workload) {
  return workload.state == "Finished" || workload.reason.starts_with("Deactivated");
}

TEST(MixedHistoryProperty, AllKindsOfWorkComeToAnEnd) {
  const uint64_t histories = histories_to_play(40, 2000);
  size_t finished = 0;
  for (uint64_t seed = 1; seed <= histories && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const SimulationOptions options{.engine = options_of(seed)};
    finished += testing::expect_whoever_can_has_run(mixed(rng), options, options, &is_over);
  }
  EXPECT_GT(finished, 5 * histories);
}

}  // namespace
}  // namespace berth::scenario
