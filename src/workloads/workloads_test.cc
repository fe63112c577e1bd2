#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/daemonset/daemonset.h"
#include "workloads/job/job.h"
#include "workloads/kinds.h"
#include "workloads/kueue/queued.h"

namespace berth::workloads {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(const std::vector<api::Pod>& pods) {
  std::vector<std::string> out;
  for (const api::Pod& pod : pods) out.push_back(pod.metadata.name);
  return out;
}

api::Object object_of(const std::string& text) {
  api::Problems problems;
  const auto documents = api::read_documents(text, "f.yaml", problems);
  auto object = api::decode(documents.at(0), problems);
  for (const auto& problem : problems) ADD_FAILURE() << to_string(problem);
  return object ? *object : api::Object(api::Unknown{});
}

std::vector<api::Pod> expand(const std::string& text, std::span<const api::Node> nodes = {}) {
  const api::Object object = object_of(text);
  return find_kind(object)->expand(object, nodes);
}

std::string controller(const std::string& kind, const std::string& fields) {
  return "apiVersion: apps/v1\nkind: " + kind +
         "\nmetadata: {name: web, namespace: team, uid: u, annotations: {berth.dev/simulated-runtime: 1h, "
         "berth.dev/placement: pack}}\n" +
         "spec:\n" + fields + "  selector: {matchLabels: {app: x}}\n" +
         "  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: x}]}}\n";
}

// What the Workload of a Job declares; "" for nothing.
std::string estimate_of(const std::string& metadata, const std::string& spec, const std::string& pod) {
  const api::Workload workload = workload_of(
      std::get<api::Job>(object_of("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: team" + metadata +
                                   "}\nspec: {" + spec + "template: {metadata: {annotations: {" + pod +
                                   "}}, spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}")));
  const std::string* out = workload.metadata.annotation("berth.dev/runtime-estimate");
  return out == nullptr ? "" : *out;
}

TEST(QueuedJobs, DeclareTheRuntimeOfTheWhole) {
  const std::string pod = "berth.dev/runtime-estimate: 10m", five = "parallelism: 2, completions: 5, ";
  EXPECT_EQ(estimate_of("", "", ""), "");
  EXPECT_EQ(estimate_of("", "", pod), "600s");
  EXPECT_EQ(estimate_of("", five, pod), "1800s") << "three rounds";
  EXPECT_EQ(estimate_of(", annotations: {kueue.x-k8s.io/job-min-parallelism: \"1\"}", five, pod), "3000s")
      << "five, if only one runs at a time";
  const std::string follows =
      ", annotations: {kueue.x-k8s.io/job-min-parallelism: \"1\", kueue.x-k8s.io/job-completions-equal-parallelism: "
      "\"true\"}";
  EXPECT_EQ(estimate_of(follows, "parallelism: 5, completions: 5, completionMode: Indexed, ", pod), "600s")
      << "fewer are fewer completions";
  EXPECT_EQ(estimate_of(follows, "parallelism: 5, completions: 5, ", pod), "3000s");
  EXPECT_EQ(estimate_of(follows, five + "completionMode: Indexed, ", pod), "3000s");
  EXPECT_EQ(estimate_of("", five + "activeDeadlineSeconds: 60, ", pod), "60s");
  EXPECT_EQ(estimate_of(", annotations: {berth.dev/runtime-estimate: 1.5s}", "activeDeadlineSeconds: 60, ", pod), "2s");
  EXPECT_EQ(estimate_of(", labels: {kueue.x-k8s.io/max-exec-time-seconds: \"90\"}", "", pod), "")
      << "its maximumExecutionTimeSeconds says that";
}

TEST(Deployments, MakeNumberedPodsOwnedByThem) {
  const auto pods = expand(controller("Deployment", "  replicas: 3\n"));
  EXPECT_THAT(names(pods), ElementsAre("web-0", "web-1", "web-2"));
  const api::ObjectMeta& metadata = pods[0].metadata;
  EXPECT_EQ(metadata.namespace_name, "team");
  EXPECT_EQ(*metadata.labels.find("app"), "x");
  EXPECT_EQ(metadata.controller()->uid, "u");
  EXPECT_EQ(*metadata.annotation("berth.dev/simulated-runtime"), "1h");
  EXPECT_EQ(metadata.annotation("berth.dev/placement"), nullptr);
}

TEST(Deployments, DefaultToOneReplicaAndMayHaveNone) {
  EXPECT_EQ(expand(controller("Deployment", "")).size(), 1);
  EXPECT_EQ(expand(controller("ReplicaSet", "  replicas: 0\n")).size(), 0);
}

TEST(StatefulSets, StartAtTheirFirstOrdinal) {
  EXPECT_THAT(names(expand(controller("StatefulSet", "  replicas: 2\n  ordinals: {start: 5}\n"))),
              ElementsAre("web-5", "web-6"));
}

TEST(DaemonSets, RunWhereTaintsAndSelectorsAllow) {
  std::vector<api::Node> nodes(4);
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i].metadata.name = "n" + std::to_string(i);
  nodes[1].taints = {{"gpu", "", model::TaintEffect::kNoSchedule}};
  nodes[2].taints = {{"node.kubernetes.io/unschedulable", "", model::TaintEffect::kNoSchedule}};
  nodes[3].taints = {{"soft", "", model::TaintEffect::kPreferNoSchedule}};
  const auto pods = expand(controller("DaemonSet", ""), nodes);
  EXPECT_THAT(names(pods), ElementsAre("web-n0", "web-n2", "web-n3"));
  const auto& term = pods[1].spec.node_affinity.required->at(0);
  EXPECT_TRUE(term.matches({}, "n2"));
  EXPECT_FALSE(term.matches({}, "n0"));
}

struct JobCase {
  std::optional<int32_t> parallelism, completions;
  int32_t active, succeeded, wanted;
};
void PrintTo(const JobCase& one, std::ostream* out) {
  *out << "parallelism " << one.parallelism.value_or(-1) << ", completions " << one.completions.value_or(-1) << ", "
       << one.active << " active, " << one.succeeded << " succeeded";
}

class JobActive : public ::testing::TestWithParam<JobCase> {};

TEST_P(JobActive, IsThatOfTheJobController) {
  api::Job job;
  job.parallelism = GetParam().parallelism;
  job.completions = GetParam().completions;
  EXPECT_EQ(wanted_active(job, GetParam().active, GetParam().succeeded), GetParam().wanted);
}

INSTANTIATE_TEST_SUITE_P(Table, JobActive,
                         ::testing::Values(JobCase{{}, {}, 0, 0, 1}, JobCase{{}, {}, 0, 1, 0}, JobCase{3, {}, 0, 0, 3},
                                           JobCase{3, {}, 2, 1, 2}, JobCase{3, 5, 0, 0, 3}, JobCase{3, 5, 3, 3, 2},
                                           JobCase{3, 5, 0, 5, 0}, JobCase{{}, 4, 0, 1, 1}, JobCase{0, 4, 0, 0, 0},
                                           JobCase{8, 2, 0, 0, 2}, JobCase{3, 2, 0, 9, 0}));

TEST(Jobs, FailAfterSixFailedPodsUnlessTheySayOtherwise) {
  api::Job job;
  EXPECT_EQ(backoff_limit(job), 6);
  job.has_backoff_limit_per_index = true;
  EXPECT_EQ(backoff_limit(job), INT32_MAX);
  job.backoff_limit = 0;
  EXPECT_EQ(backoff_limit(job), 0);
}

TEST(Jobs, MakeTheirFirstPodsAndIndexThem) {
  const auto pods = expand(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec: {parallelism: 2, completions: 4, "
      "completionMode: Indexed, "
      "template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}\n");
  EXPECT_THAT(names(pods), ElementsAre("train-0", "train-1"));
  EXPECT_EQ(*pods[1].metadata.annotation("batch.kubernetes.io/job-completion-index"), "1");
  EXPECT_EQ(*pods[1].metadata.labels.find("batch.kubernetes.io/job-name"), "train");
}

TEST(Jobs, SuspendedOnesMakeNone) {
  EXPECT_TRUE(
      expand(
          "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: train-}\nspec: {suspend: true, template: {spec: "
          "{restartPolicy: Never, containers: [{name: c, image: x}]}}}\n")
          .empty());
}

TEST(Kinds, AreSortedAndFound) {
  for (size_t i = 1; i < kinds().size(); ++i) EXPECT_LT(kinds()[i - 1].kind, kinds()[i].kind);
  EXPECT_EQ(find_kind(api::Pod{}), nullptr);
  EXPECT_EQ(find_kind(api::Unknown{"batch.volcano.sh/v1alpha1", "Job", {}}), nullptr);
}

}  // namespace
}  // namespace berth::workloads
