#include "scenario/simulation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/registry.h"
#include "scenario/testing.h"

namespace berth::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kNode =
    "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: 4, memory: 8Gi, nvidia.com/gpu: 4, "
    "pods: 10}}}\n---\n";

// With everything submitted, and not run yet.
std::unique_ptr<Simulation> prepare(const std::string& text, uint64_t seed = 0) {
  return testing::prepare(text, {.shuffle_seed = seed, .record = true, .check_invariants = true});
}

std::unique_ptr<Simulation> simulate(const std::string& text, uint64_t seed = 0) {
  auto cluster = prepare(text, seed);
  cluster->run_to_end();
  EXPECT_THAT(cluster->broken(), IsEmpty());
  return cluster;
}

std::string job(int parallelism, int completions, const std::string& runtime) {
  return "{apiVersion: batch/v1, kind: Job, metadata: {name: j, annotations: {berth.dev/simulated-runtime: " + runtime +
         "}}, spec: {parallelism: " + std::to_string(parallelism) + ", completions: " + std::to_string(completions) +
         ", template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {limits: "
         "{nvidia.com/gpu: 1}}}]}}}}\n";
}

TEST(Simulation, AJobRunsInRoundsAndTheReportKnowsItsTimes) {
  const auto cluster = simulate(kNode + job(4, 10, "1h"));
  const Report report = cluster->report();
  ASSERT_EQ(report.pods.size(), 10u);
  EXPECT_EQ(report.pods.back().finished, Time{} + Duration::seconds(3 * 3600));
  EXPECT_EQ(report.gpus_peak, 4);
  EXPECT_EQ(report.waiting(), 0u);
}

// A budget that drains lets a Job run for an hour of the two that it needs, each day anew.
TEST(Simulation, WhatGoesRoundForEverComesToAnEnd) {
  const auto cluster = prepare(std::string(kNode) + R"(
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q, annotations: {berth.dev/budget-gpu-hours: "1", berth.dev/budget-window: day, berth.dev/budget-when-spent: drain}}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: f, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: train, labels: {kueue.x-k8s.io/queue-name: q}}, spec: {template: {metadata: {annotations: {berth.dev/simulated-runtime: 2h}}, spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}
)");
  EXPECT_FALSE(cluster->run_to_end());
  EXPECT_LT(cluster->now(), Time{} + Duration::seconds(10 * 365 * 86400));
  EXPECT_TRUE(simulate(kNode + job(4, 10, "1h"))->run_to_end());
}

// While a share runs the engine says how many GPUs are in use; what it keeps for a workload is in use by nobody.
TEST(Simulation, WhatIsKeptForAWorkloadIsNotInUse) {
  const std::string queue = R"(
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: f, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q, namespace: default}, spec: {clusterQueue: q}}
---
{apiVersion: v1, kind: Pod, metadata: {name: share, annotations: {berth.dev/gpu-fraction: "0.5", berth.dev/simulated-runtime: 2h}}, spec: {containers: [{name: c, image: i}]}}
---
)";
  std::string gang = job(4, 4, "1m");
  gang.insert(gang.find("name: j,") + 8, " labels: {kueue.x-k8s.io/queue-name: q},");
  const Report report = simulate(kNode + queue + gang)->report();
  EXPECT_EQ(report.waiting(), 0u);
  EXPECT_EQ(report.gpus_peak, 4);
}

TEST(Simulation, APodThatIsBoundToANodeThatComesLaterUsesItsGpusFromThenOn) {
  const auto node = [](const std::string& name, const std::string& annotations) {
    return "---\n{apiVersion: v1, kind: Node, metadata: {name: " + name + ", annotations: {" + annotations +
           "}}, status: {capacity: {cpu: 8, pods: 8, nvidia.com/gpu: 2}}}\n";
  };
  const auto pod = [](const std::string& name, const std::string& spec) {
    return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}, spec: {" + spec +
           "containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 2}}}]}}\n";
  };
  const Report report = simulate(node("n1", "") + node("n2", "berth.dev/simulated-arrival: 10m") +
                                 pod("a", "nodeName: n2, ") + pod("b", ""))
                            ->report();
  EXPECT_EQ(report.gpus_peak, 4);
}

TEST(Simulation, WhatWorkInQueuesAsksForCountsAmongTheHabitsOfPods) {
  const auto cluster = simulate(
      std::string(kNode) +
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}\n---\n"
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, "
      "resourceGroups: [{coveredResources: [cpu, nvidia.com/gpu], flavors: [{name: f, resources: [{name: cpu, "
      "nominalQuota: 1}, {name: nvidia.com/gpu, nominalQuota: 1}]}]}]}}\n---\n"
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}\n---\n"
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: q}}, spec: {template: "
      "{spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: 2500m}, limits: "
      "{nvidia.com/gpu: 1}}}]}}}}\n");
  mig::IdleDevices idle;
  const auto rooms = mig::measure_fragmentation(cluster->engine(), idle);
  ASSERT_EQ(rooms.size(), 1u);
  EXPECT_EQ(rooms[0].free, 4);
  EXPECT_EQ(rooms[0].cpu_millis, 2500);
}

// A verdict that changes is told again half a minute later; nothing has happened in the cluster by then.
TEST(Simulation, TheEndIsWhenSomethingLastHappened) {
  const auto pod = [](const std::string& name, const std::string& annotations) {
    return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", annotations: {" + annotations +
           "}}, spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 4}}}]}}\n";
  };
  EXPECT_EQ(simulate(kNode + pod("a", "") + pod("b", ""))->report().end, Time{});
  const auto cluster = simulate(kNode + pod("a", "") + pod("b", "") + pod("c", "berth.dev/simulated-arrival: 5s") +
                                "---\n{apiVersion: v1, kind: Node, metadata: {name: n2, annotations: "
                                "{berth.dev/simulated-arrival: 10s}}, status: {capacity: {cpu: 1, pods: 1}}}\n");
  EXPECT_GE(cluster->now(), Time{} + Duration::seconds(30)) << "the verdict that names two nodes";
  EXPECT_EQ(cluster->report().end, Time{} + Duration::seconds(10));
}

// The verdict of `b` is first told before `c` has its place, and again when it may be.
TEST(Simulation, ForecastsCountFromWhenSomethingLastHappened) {
  const std::string node =
      "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: 8, pods: 8, nvidia.com/gpu: 2, "
      "example.com/x: 2}}}\n";
  const auto pod = [](const std::string& name, const std::string& estimate, const std::string& spec, int gpus) {
    return fmt::format(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {}, annotations: {{{}}}}}, spec: {{{}containers: [{{name: "
        "c, image: i, resources: {{limits: {{nvidia.com/gpu: {}, example.com/x: 1}}}}}}]}}}}\n",
        name, estimate, spec, gpus);
  };
  const std::string hour = "berth.dev/runtime-estimate: 1h";
  const std::string text = node + pod("a", hour, "nodeName: n1, ", 1) + pod("b", "", "", 2) + pod("c", hour, "", 1);
  for (const Duration interval : {Duration::seconds(30), Duration::seconds(7200)}) {
    const auto cluster = testing::prepare(text, {.engine = {.report_interval = interval}, .forecasts = true});
    cluster->run_to_end();
    EXPECT_GT(cluster->now(), Time{}) << "though nothing happens then";
    const Report report = cluster->report_with_forecasts();
    EXPECT_EQ(report.end, Time{});
    ASSERT_TRUE(report.pods.at(1).forecast);
    EXPECT_EQ(report.pods.at(1).forecast->p90, Duration::seconds(3600));
    EXPECT_EQ(report.pods.at(1).forecast->declaring, 2);
  }
}

TEST(Simulation, APodThatIsDeletedBeforeItHasANodeIsNotWaitedFor) {
  const Report report =
      simulate(std::string(kNode) +
               "{apiVersion: v1, kind: Pod, metadata: {name: p, finalizers: [example.com/x], "
               "deletionTimestamp: \"2026-01-01T00:00:00Z\"}, spec: {containers: [{name: c, image: i}]}}")
          ->report();
  EXPECT_EQ(report.waiting(), 0u);
  EXPECT_EQ(report.pods.at(0).reason, "Terminating");
  EXPECT_EQ(report.pods.at(0).ended, "Terminating");
}

TEST(Simulation, AJobOfNoDurationEnds) { EXPECT_EQ(simulate(kNode + job(1, 500, "0s"))->report().pods.size(), 500u); }

TEST(Simulation, ANodeWhoseGpusAreNeverCutInTimeIsLeftAloneInTheEnd) {
  const Report report = simulate(
                            R"(apiVersion: v1
kind: Node
metadata:
  name: gpu
  labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.count: "1", berth.dev/mig-policy: dynamic}
  annotations: {berth.dev/simulated-repartition: 15m}
status: {allocatable: {cpu: 8, memory: 8Gi, pods: 10, nvidia.com/gpu: 1}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: x, resources: {limits: {nvidia.com/mig-3g.40gb: 1}}}]}
)")
                            ->report();
  EXPECT_EQ(report.repartitions.size(), 8u);
  for (const RepartitionReport& cut : report.repartitions) EXPECT_TRUE(cut.given_up);
  EXPECT_TRUE(report.pods.at(0).node.empty());
}

TEST(Simulation, MorePodsThanItHoldsAreRefusedBeforeTheyAreMade) {
  PriorityClasses classes;
  api::Problems problems;
  std::vector<std::string> notes;
  std::string other = job(1, 600'000, "1h");
  other.replace(other.find("name: j,"), 8, "name: k,");
  auto manifests = read_manifests({{"a.yaml", job(1, 600'000, "1h") + "---\n" + other}}, classes, problems, notes);
  Simulation cluster({.policies = policy::default_policies()});
  const Status submitted = cluster.submit(std::move(manifests));
  ASSERT_FALSE(submitted);
  EXPECT_THAT(submitted.error().message, HasSubstr("more than the 1000000 that a simulation holds"));
}

TEST(Simulation, ReplayGivesTheSameDecisions) {
  const auto cluster = simulate(kNode + job(6, 20, "7m"));
  EXPECT_THAT(replay(cluster->log(), policy::default_policies(), {}), IsEmpty());
}

TEST(Simulation, ReplayWithAnotherWeightIsFoundOut) {
  const auto cluster = simulate(
      std::string(kNode) +
      "{apiVersion: v1, kind: Node, metadata: {name: n2}, status: {capacity: {cpu: 4, memory: 8Gi, pods: 10}}}\n---\n" +
      "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}\n");
  EXPECT_THAT(replay(cluster->log(), *policy::make_policy_set({{{"gpu-node-aversion", 0}}}), {}), Not(IsEmpty()));
}

// A pod that takes the place of another: while it is nominated it has its verdict, and nothing of the node yet.
void expect_nominee(const std::string& annotations, const std::string& limits) {
  const auto pod = [](const std::string& name, const std::string& notes, const std::string& asks, const char* spec) {
    return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", annotations: {" + notes + "}}, spec: {" +
           spec + "containers: [{name: c, image: i, resources: {limits: {" + asks + "}}}]}}\n";
  };
  const auto cluster = prepare(kNode + pod("low", "", "cpu: 3, nvidia.com/gpu: 4", "nodeName: n1, ") +
                               pod("high", annotations, limits, "priorityClassName: system-node-critical, "));
  cluster->settle();
  const Report report = cluster->report();
  const PodReport& high = report.pods.at(1);
  EXPECT_EQ(high.reason, "Nominated");
  EXPECT_EQ(high.nominated_node, "n1");
  EXPECT_THAT(high.message, ::testing::StartsWith("0/1 nodes are available: 1 ")) << "what the daemon tells the pod";
  EXPECT_THAT(render(report, ReportFormat::kTable), HasSubstr(", nominated for n1\n  " + high.message));
  const model::ResourceList& use = report.nodes.at(0).use;
  EXPECT_EQ(use.get("pods"), 1);
  EXPECT_EQ(use.get("cpu"), 3000);
  EXPECT_EQ(use.get("nvidia.com/gpu"), 4);
}

TEST(Report, ANomineeUsesNothingOfItsNodeAndKeepsItsVerdict) { expect_nominee("", "cpu: 3, nvidia.com/gpu: 2"); }
TEST(Report, NorDoesANomineeThatAsksForAShare) { expect_nominee("berth.dev/gpu-fraction: \"0.5\"", "cpu: 1"); }

TEST(Report, EveryFormEndsInANewlineAndShowsThePod) {
  const Report report = simulate(kNode + job(1, 1, "1h"))->report();
  for (const ReportFormat format :
       {ReportFormat::kTable, ReportFormat::kWide, ReportFormat::kJson, ReportFormat::kYaml}) {
    const std::string text = render(report, format);
    EXPECT_THAT(text, HasSubstr("j-0"));
    EXPECT_TRUE(text.ends_with('\n'));
  }
}

TEST(Report, TheYamlFormIsTheJsonForm) {
  const Report report = simulate(kNode + job(5, 5, "1h"))->report();
  api::Problems problems;
  const auto yaml = api::read_plain_documents(render(report, ReportFormat::kYaml), "y", problems);
  const auto json = api::read_plain_documents(render(report, ReportFormat::kJson), "j", problems);
  ASSERT_THAT(problems, IsEmpty());
  EXPECT_EQ(yaml.at(0).json, json.at(0).json);
}

}  // namespace
}  // namespace berth::scenario
