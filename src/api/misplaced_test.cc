// Fields of a pod, or of its template, that a file has one level too high are told with where they belong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/decode.h"

namespace berth::api {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> told(const std::string& yaml) {
  Problems problems;
  for (const Document& document : read_documents(yaml, "f.yaml", problems)) decode(document, problems);
  std::vector<std::string> out;
  for (const Problem& problem : problems) out.push_back(problem.path + ": " + problem.message);
  return out;
}

const std::string kPodSpec = "spec: {containers: [{name: c, image: x}]}";
std::string deployment(const std::string& spec, const std::string& pod_template) {
  return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {" + spec + ", template: {" + pod_template +
         "}}\n";
}
const std::string kSelector = "selector: {matchLabels: {app: x}}";
const std::string kLabels = "metadata: {labels: {app: x}}, ";
std::string cron_job(const std::string& spec, const std::string& job_template) {
  return "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: d}\nspec: {schedule: '* * * * *', " + spec +
         "jobTemplate: {" + job_template +
         "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, "
         "image: x}]}}}}}\n";
}

TEST(Misplaced, AFieldOfThePodInTheSpecOfItsWorkload) {
  EXPECT_THAT(told(deployment(kSelector + ", nodeSelector: {a: b}", kLabels + kPodSpec)),
              ElementsAre("spec.nodeSelector: unknown field; it belongs under spec.template.spec"));
  EXPECT_THAT(told(deployment(kSelector + ", nodeselector: {a: b}", kLabels + kPodSpec)),
              ElementsAre("spec.nodeselector: unknown field; did you mean 'nodeSelector', which belongs under "
                          "spec.template.spec?"));
  EXPECT_THAT(told(deployment(kSelector + ", replica: 2", kLabels + kPodSpec)),
              ElementsAre("spec.replica: unknown field; did you mean 'replicas'?"));
}

TEST(Misplaced, AFieldOfThePodInTheTemplate) {
  EXPECT_THAT(told(deployment(kSelector, kLabels + "tolerations: [], " + kPodSpec)),
              ElementsAre("spec.template.tolerations: unknown field; it belongs under spec.template.spec"));
}

TEST(Misplaced, WhatIsMissingWhereItBelongsIsNotToldAgain) {
  EXPECT_THAT(told(deployment(kSelector, kLabels + "containers: [{name: c, image: x}]")),
              ElementsAre("spec.template.containers: unknown field; it belongs under spec.template.spec"));
  EXPECT_THAT(told(deployment(kSelector, "labels: {app: x}, " + kPodSpec)),
              ElementsAre("spec.template.labels: unknown field; it belongs under spec.template.metadata"));
  EXPECT_THAT(told(deployment(kSelector, "spec: {labels: {app: x}, containers: [{name: c, image: x}]}")),
              ElementsAre("spec.template.spec.labels: unknown field; it belongs under spec.template.metadata"));
  EXPECT_THAT(told("apiVersion: v1\nkind: Pod\nname: p\n" + kPodSpec + "\n"),
              ElementsAre("name: unknown field; it belongs under metadata"));
}

TEST(Misplaced, OtherMistakesAreStillTold) {
  EXPECT_THAT(told(deployment("nodeSelector: {a: b}", kLabels + kPodSpec)),
              ElementsAre("spec.nodeSelector: unknown field; it belongs under spec.template.spec",
                          ::testing::HasSubstr("spec.selector: Required value")));
}

TEST(Misplaced, AtTheTop) {
  EXPECT_THAT(told("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n" + kPodSpec + "\nnodeSelector: {a: b}\n"),
              ElementsAre("nodeSelector: unknown field; it belongs under spec"));
  EXPECT_THAT(told("replicas: 3\nnodeSelector: {}\n" + deployment(kSelector, kLabels + kPodSpec)),
              ElementsAre("replicas: unknown field; it belongs under spec",
                          "nodeSelector: unknown field; it belongs under spec.template.spec"));
}

TEST(Misplaced, InACronJob) {
  EXPECT_THAT(told(cron_job("parallelism: 2, nodeSelector: {}, ", "")),
              ElementsAre("spec.parallelism: unknown field; it belongs under spec.jobTemplate.spec",
                          "spec.nodeSelector: unknown field; it belongs under spec.jobTemplate.spec.template.spec"));
  EXPECT_THAT(told(cron_job("", "backoffLimit: 2, ")),
              ElementsAre("spec.jobTemplate.backoffLimit: unknown field; it belongs under spec.jobTemplate.spec"));
}

TEST(Misplaced, WithinAContainer) {
  const auto container = [](const std::string& fields) {
    return told("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x, " + fields +
                "}]}\n");
  };
  EXPECT_THAT(container("limits: {cpu: 1}"),
              ElementsAre("spec.containers[0].limits: unknown field; it belongs under spec.containers[0].resources"));
  EXPECT_THAT(container("nodeSelector: {a: b}"),
              ElementsAre("spec.containers[0].nodeSelector: unknown field; it belongs under spec"));
  EXPECT_THAT(container("resources: {nvidia.com/gpu: 1}"),
              ElementsAre("spec.containers[0].resources[nvidia.com/gpu]: unknown field; it belongs under "
                          "spec.containers[0].resources.limits"));
}

TEST(Misplaced, WithinAffinity) {
  const auto pod = [](const std::string& fields) {
    return told("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: x}], " + fields +
                "}\n");
  };
  EXPECT_THAT(pod("podAntiAffinity: {}"),
              ElementsAre("spec.podAntiAffinity: unknown field; it belongs under spec.affinity"));
  const std::string preferred = "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]";
  EXPECT_THAT(
      pod("affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, topologyKey: "
          "a, podAffinityTerm: {labelSelector: {}}}]}}"),
      ElementsAre(preferred + ".topologyKey: unknown field; it belongs under " + preferred + ".podAffinityTerm"));
}

TEST(Misplaced, InANode) {
  const std::string node = "apiVersion: v1\nkind: Node\nmetadata: {name: w}\n";
  EXPECT_THAT(told(node + "taints: []\n"), ElementsAre("taints: unknown field; it belongs under spec"));
  EXPECT_THAT(told(node + "status: {taints: []}\n"),
              ElementsAre("status.taints: unknown field; it belongs under spec"));
  EXPECT_THAT(told(node + "spec: {allocatable: {}}\n"),
              ElementsAre("spec.allocatable: unknown field; it belongs under status"));
}

TEST(Misplaced, OtherKindsHaveNoSuchPlaces) {
  EXPECT_THAT(told("apiVersion: v1\nkind: Node\nmetadata: {name: w}\nspec: {tolerations: []}\n"),
              ElementsAre("spec.tolerations: unknown field; remove it, or check its indentation"));
}

}  // namespace
}  // namespace berth::api
