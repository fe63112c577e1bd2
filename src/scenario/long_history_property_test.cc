// Properties of long histories of Jobs in many queues that lend to each other, take back and evict lesser work, on
// nodes that are full: they come to their end, everybody who could run has, and no quota is lost. Several wait at a
// time for others to leave the same nodes, which short histories do not bring about. BERTH_LONG=1 runs twenty times as
// many.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/testing.h"
#include "scenario/history_testing.h"

namespace berth::scenario {
namespace {

using ::testing::IsEmpty;

constexpr const char* kApi = testing::kQueueApi;

std::string queue_text(uint64_t number, uint64_t cohorts, bool alike, Rng& rng) {
  constexpr const char* kWithin[] = {"LowerPriority", "LowerOrNewerEqualPriority", "Never"};
  constexpr const char* kReclaim[] = {"Any", "LowerPriority", "Never"};
  const char* reclaim = alike ? "Any" : kReclaim[rng.below(3)];
  const bool while_borrowing = !alike && rng.chance(30) && std::string_view(reclaim) != "Never";
  return fmt::format(
      "---\n{{{0}: ClusterQueue, metadata: {{name: q{1}}}, spec: {{cohortName: c{2}, namespaceSelector: {{}}, "
      "queueingStrategy: {3}, preemption: {{withinClusterQueue: {4}, reclaimWithinCohort: {5}{6}}}, resourceGroups: "
      "[{{coveredResources: [nvidia.com/gpu], flavors: [{{name: f, resources: [{{name: nvidia.com/gpu, nominalQuota: "
      "{7}}}]}}]}}]}}}}\n---\n{{{0}: LocalQueue, metadata: {{name: q{1}}}, spec: {{clusterQueue: q{1}}}}}\n",
      kApi, number, number % cohorts, !alike && rng.chance(20) ? "StrictFIFO" : "BestEffortFIFO",
      alike ? kWithin[0] : kWithin[rng.below(3)], reclaim,
      while_borrowing ? ", borrowWithinCohort: {policy: LowerPriority}" : "", 8 << rng.below(2));
}

// How the pods of Jobs are labelled, which nobody selects by.
enum class Labels { kNone, kOfEachJob, kOfSome };

std::string job_text(uint64_t number, uint64_t queues, uint64_t minutes, Labels labels, Rng& rng) {
  constexpr int kRuntimes[] = {5, 20, 60};
  const uint64_t pods = rng.chance(33) ? 2 : 1;
  const std::string label = labels == Labels::kNone     ? ""
                            : labels == Labels::kOfSome ? fmt::format("run: some-{}", number % 3)
                                                        : fmt::format("run: j{}", number);
  return fmt::format(
      "---\n{{apiVersion: batch/v1, kind: Job, metadata: {{name: j{}, labels: {{kueue.x-k8s.io/queue-name: q{}, "
      "kueue.x-k8s.io/priority-class: p{}}}, annotations: {{berth.dev/simulated-arrival: {}m, "
      "berth.dev/runtime-estimate: 1h}}}}, spec: {{parallelism: {}, completions: {}, template: {{metadata: "
      "{{labels: {{{}}}, annotations: {{berth.dev/simulated-runtime: {}m}}}}, spec: {{restartPolicy: Never, "
      "containers: [{{name: c, "
      "image: i, resources: {{limits: {{nvidia.com/gpu: {}}}}}}}]}}}}}}}}\n",
      number, rng.below(queues), rng.below(3), rng.below(minutes), pods, pods, label, kRuntimes[rng.below(3)],
      1 << rng.below(3));
}

std::string cluster_text(Rng& rng, Labels labels = Labels::kNone, uint64_t more_nodes = 0) {
  const uint64_t nodes = 2 + rng.below(4) + more_nodes, cohorts = 1 + rng.below(3), queues = 4 + rng.below(5);
  const bool alike = rng.chance(50);
  std::string out = fmt::format("{{{}: ResourceFlavor, metadata: {{name: f}}}}\n", kApi);
  for (uint64_t i = 0; i < nodes; ++i)
    out += fmt::format(
        "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{}}}, status: {{capacity: {{cpu: 64, memory: 64Gi, "
        "pods: "
        "110, nvidia.com/gpu: 8}}}}}}\n",
        i);
  for (int i = 0; i < 3; ++i)
    out += fmt::format("---\n{{{}: WorkloadPriorityClass, metadata: {{name: p{}}}, value: {}}}\n", kApi, i, i);
  for (uint64_t i = 0; i < queues; ++i) out += queue_text(i, cohorts, alike, rng);
  const uint64_t jobs = 40 * (1 + rng.below(3)), minutes = 60 * (1 + rng.below(5));
  for (uint64_t i = 0; i < jobs; ++i) out += job_text(i, queues, minutes, labels, rng);
  return out;
}

// Two flavors, on nodes of two sizes; limits on what is lent and borrowed; work that is not taken back at once, ends
// slowly, may have fewer pods, and does not say how long it runs.
std::string rich_queue_text(uint64_t number, uint64_t cohorts, Rng& rng) {
  constexpr const char* kWithin[] = {"LowerPriority", "LowerOrNewerEqualPriority", "Never"};
  constexpr const char* kReclaim[] = {"Any", "LowerPriority", "Never"};
  const char* reclaim = kReclaim[rng.below(3)];
  const auto quota = [&] {
    const uint64_t nominal = 4 * rng.below(5);
    std::string out = fmt::format("nominalQuota: {}", nominal);
    if (rng.chance(25)) out += fmt::format(", borrowingLimit: {}", 2 * rng.below(6));
    if (rng.chance(25)) out += fmt::format(", lendingLimit: {}", rng.below(nominal + 1));
    return out;
  };
  std::string flavors;
  for (const char* flavor : {"f", "g"})
    if (flavor[0] == 'f' || rng.chance(70))
      flavors += fmt::format("{}{{name: {}, resources: [{{name: nvidia.com/gpu, {}}}]}}", flavors.empty() ? "" : ", ",
                             flavor, quota());
  const bool while_borrowing = rng.chance(30) && std::string_view(reclaim) != "Never";
  return fmt::format(
      "---\n{{{0}: ClusterQueue, metadata: {{name: q{1}{2}}}, spec: {{cohortName: c{3}, namespaceSelector: {{}}, "
      "queueingStrategy: {4}, flavorFungibility: {{whenCanBorrow: {5}, whenCanPreempt: {6}}}, preemption: "
      "{{withinClusterQueue: {7}, reclaimWithinCohort: {8}{9}}}, resourceGroups: [{{coveredResources: "
      "[nvidia.com/gpu], flavors: [{10}]}}]}}}}\n---\n{{{0}: LocalQueue, metadata: {{name: q{1}}}, spec: "
      "{{clusterQueue: q{1}}}}}\n",
      kApi, number, rng.chance(30) ? ", annotations: {berth.dev/minimum-runtime: 15m}" : "", number % cohorts,
      rng.chance(35) ? "StrictFIFO" : "BestEffortFIFO", rng.chance(50) ? "Borrow" : "TryNextFlavor",
      rng.chance(50) ? "Preempt" : "TryNextFlavor", kWithin[rng.below(3)], reclaim,
      while_borrowing ? ", borrowWithinCohort: {policy: LowerPriority}" : "", flavors);
}

std::string rich_job_text(uint64_t number, uint64_t queues, uint64_t minutes, Rng& rng) {
  const uint64_t pods = 1 + rng.below(4);
  std::string notes = fmt::format("berth.dev/simulated-arrival: {}m", rng.below(minutes));
  if (rng.chance(60)) notes += fmt::format(", berth.dev/runtime-estimate: {}m", 5 + rng.below(90));
  if (pods > 1 && rng.chance(30))
    notes += fmt::format(", kueue.x-k8s.io/job-min-parallelism: \"{}\"", 1 + rng.below(pods - 1));
  return fmt::format(
      "---\n{{apiVersion: batch/v1, kind: Job, metadata: {{name: j{}, labels: {{kueue.x-k8s.io/queue-name: q{}, "
      "kueue.x-k8s.io/priority-class: p{}}}, annotations: {{{}}}}}, spec: {{parallelism: {}, completions: {}, "
      "template: "
      "{{metadata: {{annotations: {{berth.dev/simulated-runtime: {}m}}}}, spec: {{restartPolicy: Never, "
      "terminationGracePeriodSeconds: {}, containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: "
      "{}}}}}}}]}}}}}}}}\n",
      number, rng.below(queues), rng.below(3), notes, pods, pods, 1 + rng.below(60), rng.chance(50) ? 0 : 90,
      1 << rng.below(3));
}

testing::History rich_history(Rng& rng) {
  testing::History out;
  out.cluster = fmt::format(
      "{{{0}: ResourceFlavor, metadata: {{name: f}}, spec: {{nodeLabels: {{kind: f}}}}}}\n---\n{{{0}: ResourceFlavor, "
      "metadata: {{name: g}}, spec: {{nodeLabels: {{kind: g}}}}}}\n",
      kApi);
  const uint64_t nodes = 2 + rng.below(5), cohorts = 1 + rng.below(2), queues = 2 + rng.below(5);
  for (uint64_t i = 0; i < nodes; ++i)
    out.cluster += fmt::format(
        "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{}, labels: {{kind: {}}}}}, status: {{capacity: {{cpu: "
        "64, memory: 64Gi, pods: 110, nvidia.com/gpu: {}}}}}}}\n",
        i, i == 0 || rng.chance(50) ? "f" : "g", 4 << rng.below(2));
  for (int i = 0; i < 3; ++i)
    out.cluster += fmt::format("---\n{{{}: WorkloadPriorityClass, metadata: {{name: p{}}}, value: {}}}\n", kApi, i, i);
  for (uint64_t i = 0; i < queues; ++i) out.cluster += rich_queue_text(i, cohorts, rng);
  const uint64_t jobs = 20 * (1 + rng.below(3)), minutes = 60 * (1 + rng.below(3));
  for (uint64_t i = 0; i < jobs; ++i) out.jobs.push_back(rich_job_text(i, queues, minutes, rng));
  return out;
}

// Some ask for more than their queue may ever have, or than nodes have. All others have their turn, but for those
// behind such a one in a StrictFIFO queue.
TEST(LongHistoryProperty, RicherQueuesComeToAnEnd) {
  const uint64_t histories = histories_to_play(60, 4000);
  std::vector<uint64_t> seeds = {1024, 3084, 3823, 5784, 9286};  // which went round, or came to no end, once
  for (uint64_t seed = 1; seed <= histories; ++seed) seeds.push_back(seed);
  size_t finished = 0;
  for (const uint64_t seed : seeds) {
    if (HasFailure()) break;
    SCOPED_TRACE(seed);
    Rng rng(seed);
    engine::EngineOptions options;
    options.reservations.enabled = seed % 2 == 0;
    if (seed % 3 == 0) options.admission.fair = quota::FairRules{quota::FairRule::kLessThanOrEqualToFinalShare};
    finished += testing::expect_whoever_can_has_run(
        rich_history(rng), {.engine = options}, {},
        [](const WorkloadReport& workload) { return workload.state == "Finished"; });
  }
  EXPECT_GT(finished, 10 * histories);
}

TEST(LongHistoryProperty, QueuesThatTakeBackComeToAnEnd) {
  const uint64_t histories = histories_to_play(130, 2000);
  std::vector<uint64_t> seeds = {862, 1370};  // which went round for ever in one moment
  for (uint64_t seed = 1; seed <= histories; ++seed) seeds.push_back(seed);
  uint64_t evictions = 0;
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    engine::EngineOptions options;
    options.reservations.enabled = seed % 2 == 0;
    if (seed % 5 == 0) options.admission.fair = quota::FairRules{quota::FairRule::kLessThanOrEqualToFinalShare};
    const auto cluster = testing::prepare(cluster_text(rng), {.engine = options});
    ASSERT_FALSE(HasFailure());
    ASSERT_TRUE(cluster->run_to_end());
    EXPECT_THAT(cluster->broken(), IsEmpty());
    const Report report = cluster->report();
    for (const WorkloadReport& workload : report.workloads) {
      evictions += workload.evictions;
      EXPECT_EQ(workload.state, "Finished") << workload.name << ": " << workload.message;
    }
    testing::expect_no_quota_in_use(report);
    if (HasFailure()) break;
  }
  EXPECT_GT(evictions, histories);
}

// Who is admitted, evicted and done, and when, of a whole history on nodes that are never full.
std::vector<std::string> course_of(uint64_t seed, Labels labels) {
  Rng rng(seed);
  engine::EngineOptions options;
  options.reservations.enabled = false;
  const auto cluster = testing::prepare(cluster_text(rng, labels, 40), {.engine = options});
  EXPECT_TRUE(cluster->run_to_end());
  std::vector<std::string> out;
  for (const WorkloadReport& each : cluster->report().workloads)
    out.push_back(fmt::format("{} {} {} times, {} to {}", each.name, each.state, each.evictions,
                              each.admitted.value_or(Time{}).nanos, each.finished.value_or(Time{}).nanos));
  return out;
}

// Those that are alike wait as one, and so do those that differ in labels alone while quota is what they lack.
TEST(LongHistoryProperty, LabelsThatNobodySelectsByDecideNothing) {
  const uint64_t histories = histories_to_play(30, 400);
  for (uint64_t seed = 1; seed <= histories && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<std::string> plain = course_of(seed, Labels::kNone);
    for (const Labels labels : {Labels::kOfEachJob, Labels::kOfSome}) {
      const std::vector<std::string> other = course_of(seed, labels);
      ASSERT_EQ(other.size(), plain.size());
      for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(other[i], plain[i]);
    }
  }
}

}  // namespace
}  // namespace berth::scenario
