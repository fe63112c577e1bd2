#include "bridge/to_model.h"

#include <gtest/gtest.h>

#include "bridge/queues.h"

namespace berth::bridge {
namespace {

api::Pod pod() {
  api::Pod pod;
  pod.metadata.uid = "u";
  pod.metadata.name = "p";
  pod.metadata.namespace_name = "ns";
  pod.spec.scheduler_name = "berth";
  pod.spec.containers.resize(1);
  return pod;
}
const SchedulerNames kServed = {"berth", "gpu"};

TEST(ToModel, ThePlacementAnnotationCountsOnlyAsPackOrSpread) {
  const auto placement = [](const char* wish) {
    api::Pod object = pod();
    object.metadata.annotations = {{"berth.dev/placement", wish}};
    return to_model(object, kServed).placement;
  };
  EXPECT_EQ(placement("pack"), model::Placement::kPack);
  EXPECT_EQ(placement("spread"), model::Placement::kSpread);
  EXPECT_EQ(placement("Pack"), model::Placement::kDefault);
  EXPECT_EQ(to_model(pod(), kServed).placement, model::Placement::kDefault);
}

TEST(ToModel, NamespacesSayThePlacementOfTheirPods) {
  api::Namespace object;
  object.metadata.name = "ns";
  EXPECT_EQ(to_event(object).placement, model::Placement::kDefault);
  object.metadata.annotations = {{"berth.dev/placement", "spread"}};
  EXPECT_EQ(to_event(object).name, "ns");
  EXPECT_EQ(to_event(object).placement, model::Placement::kSpread);
}

TEST(ToModel, APodIsProtectedOnlyByTheWordFalse) {
  const auto preemptible = [](const char* value) {
    api::Pod object = pod();
    object.metadata.annotations = {{"berth.dev/preemptible", value}};
    return to_model(object, kServed).preemptible;
  };
  EXPECT_FALSE(preemptible("false"));
  EXPECT_TRUE(preemptible("true"));
  EXPECT_TRUE(preemptible("False"));
  EXPECT_TRUE(to_model(pod(), kServed).preemptible);
}

TEST(ToModel, NamespacesAllowProtectionOnlyByTheWordTrue) {
  const auto protects = [](const char* value) {
    api::Namespace object;
    object.metadata.annotations = {{"berth.dev/allow-protected-pods", value}};
    return to_event(object).protects_pods;
  };
  EXPECT_TRUE(protects("true"));
  EXPECT_FALSE(protects("false"));
  EXPECT_FALSE(protects("yes"));
  EXPECT_FALSE(to_event(api::Namespace{}).protects_pods);
}

TEST(ToModel, AnnotationsThatCannotBeMeantAreNamed) {
  const auto problem = [](const char* name, const char* value) {
    api::ObjectMeta metadata;
    metadata.annotations = {{name, value}};
    return annotation_problem(metadata);
  };
  EXPECT_EQ(problem("berth.dev/placement", "Pack"),
            "annotation berth.dev/placement: 'Pack' is neither pack nor spread; the default holds");
  EXPECT_EQ(problem("berth.dev/preemptible", "no"),
            "annotation berth.dev/preemptible: 'no' is neither true nor false; it has no effect");
  EXPECT_EQ(problem("berth.dev/allow-protected-pods", ""),
            "annotation berth.dev/allow-protected-pods: '' is neither true nor false; it has no effect");
  EXPECT_EQ(problem("berth.dev/runtime-estimate", "90"),
            "annotation berth.dev/runtime-estimate: '90' is a duration without a unit; write 90s; it has no effect");
  EXPECT_EQ(problem("berth.dev/preemptible", "false"), "");
  EXPECT_EQ(problem("berth.dev/placement", "spread"), "");
  EXPECT_EQ(problem("berth.dev/runtime-estimate", "90m"), "");
}

TEST(ToModel, WhatAPodDeclaresIsNoPartOfWhereItFits) {
  api::Pod pod, other;
  pod.metadata.annotations = {{"berth.dev/runtime-estimate", "90m"}};
  other.spec.active_deadline_s = 60;
  EXPECT_EQ(to_model(pod, {}).runtime, Duration::seconds(5400));
  EXPECT_EQ(to_model(other, {}).runtime, Duration::seconds(60));
  EXPECT_EQ(to_model(api::Pod{}, {}).runtime, std::nullopt);
  EXPECT_EQ(*to_model(pod, {}).spec, *to_model(other, {}).spec);
}

TEST(ToModel, AWorkloadTakesWhatItDeclaresElseAsLongAsTheLongestOfItsPods) {
  api::Workload workload;
  workload.pod_sets.resize(2);
  workload.pod_sets[0].pod_template.metadata.annotations = {{"berth.dev/runtime-estimate", "1h"}};
  EXPECT_EQ(to_model(workload).runtime, std::nullopt) << "one of them says nothing";
  workload.pod_sets[1].pod_template.spec.active_deadline_s = 7200;
  EXPECT_EQ(to_model(workload).runtime, Duration::seconds(7200));
  workload.max_execution_s = 60;
  EXPECT_EQ(to_model(workload).runtime, Duration::seconds(60));
  workload.metadata.annotations = {{"berth.dev/runtime-estimate", "30s"}};
  EXPECT_EQ(to_model(workload).runtime, Duration::seconds(30));
}

TEST(ToModel, QuotaCountsAShareAsItsPartOfAGpu) {
  const auto counted = [](const char* annotation, const char* value, int64_t gpus = 0) {
    api::Workload workload;
    api::PodTemplate& pods = workload.pod_sets.emplace_back().pod_template;
    pods.metadata.annotations = {{annotation, value}};
    pods.spec.containers.resize(1);
    if (gpus > 0) pods.spec.containers[0].resources.requests = {{"nvidia.com/gpu", gpus}};
    return to_model(workload).pod_sets.front().requests.get("nvidia.com/gpu");
  };
  EXPECT_EQ(counted("berth.dev/gpu-fraction", "0.25"), 250'000);
  EXPECT_EQ(counted("gpu-fraction", "0.333333"), 333'333);
  EXPECT_EQ(counted("berth.dev/gpu-memory", "10Gi"), 1'000'000) << "where its flavor tells nothing else";
  EXPECT_EQ(counted("berth.dev/gpu-fraction", "7"), 0) << "it never starts";
  EXPECT_EQ(counted("else", "1", 2), 2'000'000);
  EXPECT_EQ(counted("else", "1", INT64_MAX), INT64_MAX);
}

TEST(ToModel, WhatPreemptionAsksOfAPod) {
  api::Pod object = pod();
  EXPECT_TRUE(to_model(object, kServed).preempts);
  EXPECT_EQ(to_model(object, kServed).started, Time{});
  object.spec.preemption_policy = "Never";
  object.status.start_time = Time{9};
  object.status.nominated_node_name = "n";
  EXPECT_FALSE(to_model(object, kServed).preempts);
  EXPECT_EQ(to_model(object, kServed).started, Time{9});
  EXPECT_EQ(to_model(object, kServed).nominated_node, "n");
}

TEST(ToModel, BudgetsSayWhichPodsAndHowManyMayGo) {
  api::PodDisruptionBudget object;
  object.metadata.namespace_name = "ns";
  object.metadata.name = "b";
  EXPECT_FALSE(to_model(object).pods.matches({}));
  object.selector.selects_nothing = false;
  object.disruptions_allowed = 2;
  object.disrupted_pods = {"p"};
  const model::DisruptionBudget budget = to_model(object);
  EXPECT_EQ(budget.key(), "ns/b");
  EXPECT_TRUE(budget.pods.matches({}));
  EXPECT_EQ(budget.allowed, 2);
  EXPECT_EQ(budget.disrupted, std::vector<std::string>{"p"});
}

TEST(ToModel, OnlyServedSchedulerNamesAreOurs) {
  api::Pod object = pod();
  EXPECT_TRUE(to_model(object, kServed).ours);
  object.spec.scheduler_name = "default-scheduler";
  EXPECT_FALSE(to_model(object, kServed).ours);
  EXPECT_TRUE(to_model(object, {}).ours);
}

TEST(ToModel, FlagsFollowMetadataSpecAndPhase) {
  api::Pod object = pod();
  const model::Pod plain = to_model(object, kServed);
  EXPECT_FALSE(plain.gated || plain.terminating || plain.terminal || plain.rejected_by_kubelet);
  EXPECT_EQ(plain.priority, 0);
  EXPECT_EQ(plain.owner_uid, "");
  object.spec.scheduling_gates = {"quota"};
  object.metadata.deleted = Time{1};
  object.metadata.created = Time{7};
  object.spec.priority = -3;
  object.spec.node_name = "a";
  object.metadata.owners = {{"v1", "Node", "n", "other", false}, {"batch/v1", "Job", "j", "job-uid", true}};
  const model::Pod full = to_model(object, kServed);
  EXPECT_TRUE(full.gated);
  EXPECT_TRUE(full.terminating);
  EXPECT_EQ(full.created, Time{7});
  EXPECT_EQ(full.priority, -3);
  EXPECT_EQ(full.node_name, "a");
  EXPECT_EQ(full.owner_uid, "job-uid");
  EXPECT_TRUE(full.of_job && !plain.of_job);
  for (const char* phase : {"Succeeded", "Failed"}) {
    object.status.phase = phase;
    EXPECT_TRUE(to_model(object, kServed).terminal) << phase;
  }
}

TEST(ToModel, KnowsThePodsThatTheKubeletRefused) {
  const auto rejected = [](const char* phase, const char* reason) {
    api::Pod object = pod();
    object.status.phase = phase;
    object.status.reason = reason;
    return to_model(object, kServed).rejected_by_kubelet;
  };
  for (const char* reason : {"OutOfcpu", "OutOfnvidia.com/gpu", "OutOfpods", "UnexpectedAdmissionError", "NodeAffinity",
                             "TopologyAffinityError"})
    EXPECT_TRUE(rejected("Failed", reason)) << reason;
  for (const char* reason : {"", "Evicted", "DeadlineExceeded", "NodeLost", "OOMKilled"})
    EXPECT_FALSE(rejected("Failed", reason)) << reason;
  EXPECT_FALSE(rejected("Running", "OutOfcpu"));
}

TEST(ToModel, TheSpecCarriesEverythingThatDecidesWhereAPodFits) {
  api::Pod object = pod();
  object.spec.containers[0].resources.requests = {{"cpu", 250}};
  object.spec.containers[0].ports = {
      {.container_port = 80, .host_port = 8080, .host_ip = "", .protocol = model::Protocol::kTcp}};
  object.spec.node_selector = {{"zone", "x"}};
  object.spec.tolerations = {{.key = "gpu", .value = "true"}};
  object.spec.node_affinity.preferred = {{5, {}}};
  const auto spec = to_model(object, kServed).spec;
  EXPECT_EQ(spec->requests.get("cpu"), 250);
  EXPECT_EQ(spec->requests.get("pods"), 1);
  ASSERT_EQ(spec->host_ports.size(), 1U);
  EXPECT_EQ(spec->host_ports[0].ip, "0.0.0.0");
  EXPECT_EQ(spec->node_selector, object.spec.node_selector);
  EXPECT_EQ(spec->tolerations, object.spec.tolerations);
  EXPECT_EQ(spec->affinity, object.spec.node_affinity);
}

TEST(ToModel, ImagesOfAllContainersGetTheTagThatTheyMean) {
  api::Pod object = pod();
  object.spec.containers.resize(4);
  object.spec.containers[0].image = "registry:5000/team/app";
  object.spec.containers[1].image = "nginx:1.27";
  object.spec.containers[2].image = "nginx:1.27";
  object.spec.init_containers.resize(1);
  object.spec.init_containers[0].image = "busybox@sha256:0123";
  EXPECT_EQ(
      to_model(object, kServed).spec->images,
      (std::vector<std::string>{"busybox@sha256:0123", "nginx:1.27", "nginx:1.27", "registry:5000/team/app:latest"}))
      << "an image counts for each container that runs it";
}

TEST(ToModel, ResourceClaimsAreAPartOfTheSpec) {
  api::Pod object = pod();
  EXPECT_FALSE(to_model(object, kServed).spec->resource_claims);
  object.spec.has_resource_claims = true;
  EXPECT_TRUE(to_model(object, kServed).spec->resource_claims);
}

TEST(ToModel, LabelsAreThereOnlyWhereThePodHasSome) {
  api::Pod object = pod();
  EXPECT_EQ(to_model(object, kServed).labels, nullptr);
  object.metadata.labels = {{"app", "x"}};
  ASSERT_NE(to_model(object, kServed).labels, nullptr);
  EXPECT_EQ(*to_model(object, kServed).labels, object.metadata.labels);
}

TEST(ToModel, ThePeersOfAPodAreAPartOfItsSpec) {
  api::Pod object = pod();
  object.spec.pod_affinity.required.resize(1);
  EXPECT_EQ(to_model(object, kServed).spec->peers.affinity.size(), 1U);
}

TEST(ToModel, NodesKeepWhatPoliciesRead) {
  api::Node object;
  object.metadata.name = "a";
  object.metadata.uid = "u";
  object.metadata.labels = {{"zone", "x"}};
  object.unschedulable = true;
  object.taints = {{"gpu", "true", model::TaintEffect::kNoSchedule}};
  object.capacity = {{"cpu", 2000}};
  object.allocatable = {{"cpu", 1900}};
  object.images = {{{"nginx:1.27", "nginx@sha256:0123"}, 70}, {{"busybox:1"}, 4}};
  const model::Node node = to_model(object, DeviceKnowledge::kCounts);
  EXPECT_EQ(node.name, "a");
  EXPECT_EQ(node.uid, "u");
  EXPECT_EQ(node.labels, object.metadata.labels);
  EXPECT_TRUE(node.unschedulable);
  EXPECT_EQ(node.taints, object.taints);
  EXPECT_EQ(node.capacity.get("cpu"), 2000);
  EXPECT_EQ(node.allocatable.get("cpu"), 1900);
  EXPECT_EQ(node.images, (std::vector<std::pair<std::string, int64_t>>{
                             {"busybox:1", 4}, {"nginx:1.27", 70}, {"nginx@sha256:0123", 70}}));
}

}  // namespace
}  // namespace berth::bridge
