#include "scenario/manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::scenario {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Read {
  std::vector<Manifest> manifests;
  api::Problems problems;
  std::vector<std::string> notes;
};

Read read(std::string text) {
  Read out;
  PriorityClasses classes;
  out.manifests = read_manifests({{"a.yaml", std::move(text)}}, classes, out.problems, out.notes);
  return out;
}

constexpr const char* kPod =
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}\n";

TEST(Manifests, FillInTheNamespaceAndThePriority) {
  Read got = read(std::string("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: d}, value: 7, "
                              "globalDefault: true}\n---\n") +
                  kPod);
  ASSERT_THAT(got.problems, IsEmpty());
  EXPECT_EQ(api::metadata_of(got.manifests.at(1).object).namespace_name, "default");
  EXPECT_EQ(pod_spec_of(got.manifests.at(1).object)->priority, 7);
}

TEST(Manifests, ANamespaceIsLabelledWithItsName) {
  const Read got = read("{apiVersion: v1, kind: Namespace, metadata: {name: ml, labels: {team: red}}}\n");
  const auto& labels = api::metadata_of(got.manifests.at(0).object).labels;
  EXPECT_EQ(*labels.find("kubernetes.io/metadata.name"), "ml");
  EXPECT_EQ(*labels.find("team"), "red");
}

TEST(Manifests, ADuplicateNamesBothLines) {
  const Read got = read(std::string(kPod) +
                        "---\n{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: "
                        "[{name: other, image: i}]}}\n");
  ASSERT_EQ(got.problems.size(), 1u);
  EXPECT_EQ(got.problems[0].line, 3);
  EXPECT_THAT(got.problems[0].message, HasSubstr("already defined at a.yaml:1"));
}

TEST(Manifests, AnUnknownPriorityClassIsAProblemAtItsLine) {
  const Read got = read(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  priorityClassName: high\n  containers: [{name: c, "
      "image: x}]\n");
  ASSERT_EQ(got.problems.size(), 1u);
  EXPECT_EQ(got.problems[0].line, 5);
  EXPECT_EQ(got.problems[0].path, "spec.priorityClassName");
  EXPECT_THAT(got.problems[0].message, HasSubstr("no PriorityClass with name high was found"));
}

std::vector<std::string> lines_of(const api::Problems& problems) {
  std::vector<std::string> out;
  for (const api::Problem& problem : problems) out.push_back(api::to_string(problem));
  return out;
}

TEST(Manifests, OneMistakeHidesNoOtherOfTheSameDocument) {
  const Read got = read(
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    berth.dev/simulated-runtime: abc\n"
      "    berth.dev/simulated-arrival: 100000h\n    berth.dev/placement: packk\n    berth.dev/placment: pack\n"
      "    berth.dev/preemptible: maybe\nspec:\n  nodeselector: {a: b}\n  priorityClassName: high\n"
      "  containers: [{name: c, image: x}]\n"
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  priority: 12\n  hostNetwork: 3\n"
      "  containers: [{name: c, image: x}]\n");
  EXPECT_THAT(lines_of(got.problems),
              testing::UnorderedElementsAre(
                  HasSubstr("a.yaml:6: metadata.annotations[berth.dev/simulated-runtime]"),
                  HasSubstr("a.yaml:7: metadata.annotations[berth.dev/simulated-arrival]"),
                  HasSubstr("a.yaml:8: metadata.annotations[berth.dev/placement]"),
                  HasSubstr("a.yaml:9: metadata.annotations[berth.dev/placment]"),
                  HasSubstr("a.yaml:10: metadata.annotations[berth.dev/preemptible]"),
                  HasSubstr("a.yaml:12: spec.nodeselector"), HasSubstr("a.yaml:13: spec.priorityClassName"),
                  HasSubstr("a.yaml:18: metadata.name: Pod default/p is already defined at a.yaml:1"),
                  HasSubstr("a.yaml:20: spec.priority: the integer value"), HasSubstr("a.yaml:21: spec.hostNetwork")));
}

TEST(Manifests, WhatCouldNotBeReadAccusesNobody) {
  const std::string pods =
      "---\n{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {priorityClassName: gold, containers: [{name: c, "
      "image: i}]}}\n"
      "---\n{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {priorityClassName: tin, containers: [{name: c, "
      "image: i}]}}\n"
      "---\n{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: [x]}, spec: {containers: [{name: c, image: "
      "i}]}}\n";
  const std::string gold =
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: gold}, value: x}\n";
  EXPECT_THAT(lines_of(read(gold + pods).problems),
              ElementsAre(HasSubstr("a.yaml:1: value:"), HasSubstr("no PriorityClass with name tin"),
                          HasSubstr("metadata.namespace: expected a string")));
  const std::string nameless =
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: 3}, value: 4}\n";
  EXPECT_THAT(lines_of(read(nameless + pods).problems),
              ElementsAre(HasSubstr("a.yaml:1: metadata.name:"), HasSubstr("metadata.namespace: expected a string")));
  const std::string twice = "{apiVersion: v1, kind: Node, metadata: {name: m1, name: m1}}\n";  // and yet all was read
  EXPECT_THAT(lines_of(read(twice + pods).problems),
              testing::UnorderedElementsAre(HasSubstr("given twice"), HasSubstr("no PriorityClass with name gold"),
                                            HasSubstr("no PriorityClass with name tin"),
                                            HasSubstr("metadata.namespace: expected a string")));
  const std::string broken =
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: gold}, value: 4\n";
  EXPECT_THAT(lines_of(read(broken + pods).problems),
              ElementsAre(HasSubstr("a.yaml:"), HasSubstr("metadata.namespace: expected a string")));
}

TEST(Manifests, WhatHasNoEffectIsNoted) {
  const Read got = read("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n");
  EXPECT_THAT(got.notes, ElementsAre(HasSubstr("a.yaml:1: ConfigMap c: this kind has no effect")));
}

TEST(Manifests, AMisspeltAnnotationOfBerthIsAProblem) {
  const Read got = read(
      "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n  annotations:\n    berth.dev/placment: pack\n"
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {berth.dev/simulated-runtim: 1h}}\n"
      "spec: {containers: [{name: c, image: i}]}\n");
  EXPECT_THAT(got.manifests, IsEmpty());
  ASSERT_EQ(got.problems.size(), 2u);
  EXPECT_EQ(got.problems[0].line, 6);
  EXPECT_THAT(got.problems[0].message, HasSubstr("did you mean berth.dev/placement?"));
  EXPECT_EQ(got.problems[1].line, 10);
  EXPECT_THAT(got.problems[1].message, HasSubstr("did you mean berth.dev/simulated-runtime?"));
}

TEST(Manifests, AnAnnotationOfBerthThatResemblesNoneIsNoted) {
  const Read got =
      read("{apiVersion: v1, kind: Namespace, metadata: {name: x, annotations: {berth.dev/colour-of-choice: red}}}\n");
  EXPECT_THAT(got.problems, IsEmpty());
  EXPECT_THAT(got.notes, ElementsAre(HasSubstr("annotation berth.dev/colour-of-choice means nothing to Berth")));
}

TEST(Manifests, WhatLooksLikeAnAnnotationForGpusIsTold) {
  const Read got = read(
      "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {gpu-frac: '0.5', berth.dev/gpu-devices: '3'}}, "
      "spec: {containers: [{name: c, image: i}]}}\n---\n"
      "{apiVersion: v1, kind: Pod, metadata: {name: q, annotations: {berth.dev/gpu-devices: '3'}}, "
      "spec: {nodeName: dgx, containers: [{name: c, image: i}]}}\n---\n"
      "{apiVersion: v1, kind: Pod, metadata: {name: r, annotations: {berth.dev/gpu-frac: '0.5'}}, "
      "spec: {containers: [{name: c, image: i}]}}\n");
  EXPECT_THAT(got.notes, ElementsAre(HasSubstr("a.yaml:1: annotation berth.dev/gpu-devices is ignored"),
                                     HasSubstr("a.yaml:1: annotation gpu-frac means nothing to Berth; did you mean "
                                               "gpu-fraction?")));
  ASSERT_EQ(got.problems.size(), 1u);
  EXPECT_THAT(got.problems[0].message, HasSubstr("did you mean berth.dev/gpu-fraction?"));
}

TEST(PriorityClasses, APodThatAServerHasStoredKeepsItsPriority) {
  api::PodSpec spec;
  spec.priority_class_name = "gone";
  spec.priority = 12;
  EXPECT_EQ(PriorityClasses().resolve(spec, true)->value, 12);
  EXPECT_THAT(PriorityClasses().resolve(spec).error().message, HasSubstr("no PriorityClass with name gone"));
  const Read got = read(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: d}, value: 7, globalDefault: true}\n"
      "---\n{apiVersion: v1, kind: Pod, metadata: {name: p, uid: x}, spec: {priority: 0, containers: [{name: c, image: "
      "i}]}}\n");
  EXPECT_THAT(lines_of(got.problems), IsEmpty());
}

const std::string kKata =
    "---\n{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}, handler: kata, overhead: {podFixed: "
    "{cpu: 500m}}, scheduling: {nodeSelector: {kata: 'yes'}, tolerations: [{key: kata, operator: Exists}]}}\n";
std::string kata_pod(const std::string& fields) {
  return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {runtimeClassName: kata, " + fields +
         "containers: [{name: c, image: i}]}}\n";
}

TEST(RuntimeClasses, GiveNewPodsTheirOverheadNodesAndTolerations) {
  Read got = read(kata_pod("tolerations: [{key: kata, operator: Exists}], ") + kKata);
  EXPECT_THAT(lines_of(got.problems), IsEmpty());
  ASSERT_EQ(got.manifests.size(), 2U);
  const api::PodSpec& spec = *pod_spec_of(got.manifests[0].object);
  EXPECT_EQ(spec.overhead.get("cpu"), 500);
  ASSERT_NE(spec.node_selector.find("kata"), nullptr);
  EXPECT_EQ(spec.tolerations.size(), 1U);
  got = read(kata_pod("overhead: {cpu: 1}, nodeSelector: {kata: 'no'}, ") + kKata);
  EXPECT_THAT(lines_of(got.problems),
              ElementsAre(HasSubstr("spec.overhead: Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
                          HasSubstr("spec.nodeSelector: conflict: runtimeClass.scheduling.nodeSelector[kata] = yes")));
}

TEST(RuntimeClasses, OneThatIsNotThereIsNoted) {
  const Read got = read(kata_pod(""));
  EXPECT_THAT(got.notes, ElementsAre(HasSubstr("RuntimeClass kata is not in the input")));
  EXPECT_THAT(lines_of(read("{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}}").problems),
              ElementsAre(HasSubstr("handler: Required value")));
}

TEST(Manifests, TheVerySameObjectAgainCountsOnce) {
  const std::string name_space = "{apiVersion: v1, kind: Namespace, metadata: {name: ml}}\n";
  const Read got = read(name_space + "---\n" + name_space);
  EXPECT_THAT(lines_of(got.problems), IsEmpty());
  EXPECT_EQ(got.manifests.size(), 1U);
}

TEST(Manifests, AControllerThatComesWithItsPodsMakesNoOthers) {
  const std::string deployment =
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, uid: du}, spec: {selector: {matchLabels: {a: b}}, "
      "template: {metadata: {labels: {a: b}}, spec: {priorityClassName: gone, containers: [{name: c, image: i}]}}}}\n";
  const std::string replica_set =
      "---\n{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: d-1, uid: ru, ownerReferences: [{apiVersion: "
      "apps/v1, kind: Deployment, name: d, uid: du, controller: true}]}, spec: {selector: {matchLabels: {a: b}}, "
      "template: "
      "{metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}\n";
  const Read got = read(deployment + replica_set);
  EXPECT_THAT(lines_of(got.problems), IsEmpty());
  ASSERT_EQ(got.manifests.size(), 1U);
  EXPECT_EQ(describe(got.manifests[0].object), "ReplicaSet default/d-1");
  EXPECT_THAT(got.notes, ElementsAre(HasSubstr("Deployment default/d: what it made is in the input")));
}

TEST(PriorityClasses, APriorityThatContradictsTheClassIsRefused) {
  api::PodSpec spec;
  spec.priority = 12;
  EXPECT_THAT(PriorityClasses().resolve(spec).error().message, HasSubstr("must not be provided in pod spec"));
}

// As kube-apiserver 1.35.4 does.
TEST(PriorityClasses, APolicyThatContradictsTheClassIsRefused) {
  const auto read_pod = [](const std::string& metadata, const std::string& spec) {
    const Read got = read(
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: polite}, value: 7, preemptionPolicy: "
        "Never}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p" +
        metadata + "}\nspec: {containers: [{name: c, image: i}], preemptionPolicy: Never" + spec + "}\n");
    return lines_of(got.problems);
  };
  EXPECT_THAT(read_pod("", ""), ElementsAre(HasSubstr("spec.preemptionPolicy: Forbidden: the string value of "
                                                      "PreemptionPolicy (Never) must not be provided in pod spec")));
  EXPECT_THAT(read_pod("", ", priorityClassName: polite"), IsEmpty());
  EXPECT_THAT(read_pod(", uid: x", ", priority: 0"), IsEmpty());
  EXPECT_THAT(read_pod(", uid: x", ""), IsEmpty());
}

TEST(PriorityClasses, GivePodsTheirPreemptionPolicy) {
  PriorityClasses classes;
  api::PriorityClass polite;
  polite.metadata.name = "polite";
  polite.value = 7;
  polite.preemption_policy = "Never";
  classes.add(polite);
  api::PodSpec spec;
  EXPECT_EQ(classes.resolve(spec)->preemption_policy, "PreemptLowerPriority");
  spec.priority_class_name = "polite";
  EXPECT_EQ(classes.resolve(spec)->preemption_policy, "Never");
  EXPECT_EQ(classes.resolve(spec)->value, 7);
}

}  // namespace
}  // namespace berth::scenario
