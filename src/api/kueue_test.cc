#include "api/kueue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/queue_usage.h"

namespace berth::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::optional<KueueObject> read(const std::string& text, Problems& problems) {
  const std::vector<Document> documents = read_documents(text, "f", problems);
  return documents.size() == 1 ? decode_kueue(documents.front(), problems) : std::nullopt;
}

template <typename T>
T object(const std::string& kind, const std::string& rest, const std::string& version = "v1beta2") {
  Problems problems;
  const auto out =
      read("apiVersion: kueue.x-k8s.io/" + version + "\nkind: " + kind + "\nmetadata: {name: a}\n" + rest, problems);
  EXPECT_THAT(problems, IsEmpty());
  return std::get<T>(*out);
}

TEST(Kueue, ChecksOfAQueueAreReadInBothForms) {
  const auto plain = object<ClusterQueue>("ClusterQueue", "spec: {admissionChecks: [budget, license]}", "v1beta1");
  ASSERT_THAT(plain.queue.checks, SizeIs(2));
  EXPECT_EQ(plain.queue.checks.back().check, "license");
  EXPECT_THAT(plain.queue.checks.back().flavors, IsEmpty());
  const auto told = object<ClusterQueue>(
      "ClusterQueue", "spec: {admissionChecksStrategy: {admissionChecks: [{name: budget, onFlavors: [h100]}]}}");
  ASSERT_THAT(told.queue.checks, SizeIs(1));
  EXPECT_THAT(told.queue.checks.front().flavors, ElementsAre("h100"));
}

TEST(Kueue, ACheckIsActiveUnlessItsConditionSaysOtherwise) {
  const std::string spec = "spec: {controllerName: example.com/c}\n";
  EXPECT_EQ(object<AdmissionCheck>("AdmissionCheck", spec).active, std::nullopt);
  EXPECT_TRUE(object<AdmissionCheck>("AdmissionCheck", spec).check.active);
  const auto down = object<AdmissionCheck>(
      "AdmissionCheck", spec + "status: {conditions: [{type: Active, status: \"False\", reason: R, message: m}]}");
  EXPECT_EQ(down.active, false);
  EXPECT_FALSE(down.check.active);
  EXPECT_EQ(down.check.controller, "example.com/c");
  EXPECT_EQ(down.check.name, "a");
}

TEST(Kueue, ACheckWithoutAControllerIsAProblem) {
  Problems problems;
  read("apiVersion: kueue.x-k8s.io/v1beta2\nkind: AdmissionCheck\nmetadata: {name: a}\nspec: {}", problems);
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_THAT(to_string(problems.front()), HasSubstr("name the controller that sees to the check"));
}

TEST(Kueue, AResourceOrAFlavorOfTwoGroupsIsAProblem) {
  const std::string gpus = "flavors: [{name: f, resources: [{name: gpu, nominalQuota: 1}]}]";
  Problems problems;
  read(
      "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: a}\nspec: {resourceGroups: "
      "[{coveredResources: [gpu], " +
          gpus + "}, {coveredResources: [gpu], " + gpus + "}]}",
      problems);
  ASSERT_THAT(problems, SizeIs(2));
  EXPECT_THAT(to_string(problems[0]), HasSubstr("spec.resourceGroups[1].coveredResources[0]: Duplicate value"));
  EXPECT_THAT(to_string(problems[1]), HasSubstr("spec.resourceGroups[1].flavors[0].name: Duplicate value"));
}

TEST(Kueue, UsageOfLocalQueuesIsReadWithTheirWeights) {
  const auto queue =
      object<ClusterQueue>("ClusterQueue", "spec: {admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}}");
  EXPECT_TRUE(queue.queue.usage_based);
  EXPECT_EQ(
      object<LocalQueue>("LocalQueue", "spec: {clusterQueue: a, fairSharing: {weight: \"1.5\"}}").queue.fair_weight,
      1500);
}

TEST(Kueue, WhatALocalQueueHasUsedStandsInItsStatus) {
  const auto used = [](const std::string& said) {
    return object<LocalQueue>("LocalQueue",
                              "spec: {clusterQueue: a}\nstatus: {fairSharing: {weightedShare: 0, "
                              "admissionFairSharingStatus: " +
                                  said + "}}")
        .queue.used;
  };
  const auto read =
      used("{consumedResources: {nvidia.com/gpu: 3250m, cpu: 2, memory: 64Gi}, lastUpdate: '2026-01-02T03:04:05.5Z'}");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->until, *parse_rfc3339("2026-01-02T03:04:05.5Z"));
  EXPECT_EQ(read->amounts,
            (std::map<std::string, double>{{"cpu", 2}, {"memory", 68719476736.0}, {"nvidia.com/gpu", 3.25}}));
  EXPECT_FALSE(object<LocalQueue>("LocalQueue", "spec: {clusterQueue: a}").queue.used);
  EXPECT_FALSE(used("{consumedResources: {cpu: 2}, lastUpdate: yesterday}"));
  EXPECT_FALSE(used("{consumedResources: {cpu: 2}}"));
  EXPECT_FALSE(used("7"));
  const auto nonsense = used(
      "{consumedResources: {cpu: -2, memory: 1e400, a: much, b: [1], c: null, d: 1}, "
      "lastUpdate: '1700-01-02T03:04:05Z'}");
  ASSERT_TRUE(nonsense);
  EXPECT_EQ(nonsense->until, Time{});
  EXPECT_EQ(nonsense->amounts, (std::map<std::string, double>{{"d", 1}}));
}

TEST(Kueue, AmountsOfUsageAreWrittenAsQuantities) {
  EXPECT_EQ(usage_text(0), "0");
  EXPECT_EQ(usage_text(40), "40");
  EXPECT_EQ(usage_text(3.25), "3.25");
  EXPECT_EQ(usage_text(0.000344), "0.000344");
  EXPECT_LE(usage_text(1e30).size(), 32U) << "as many characters as the schema lets pass";
}

TEST(Kueue, TimesOfAWorkloadAreReadAsBothVersionsWriteThem) {
  const std::string sets = "podSets: [{name: main, count: 1, template: {spec: {containers: [{name: c, image: i}]}}}]";
  const auto newer = object<Workload>("Workload", "spec: {maximumExecutionTimeSeconds: 60, " + sets +
                                                      "}\nstatus: {accumulatedPastExecutionTimeSeconds: 7}");
  EXPECT_EQ(newer.max_execution_s, 60);
  EXPECT_EQ(newer.past_execution_s, 7);
  const auto older = object<Workload>(
      "Workload", "spec: {" + sets + "}\nstatus: {accumulatedPastExexcutionTimeSeconds: 8}", "v1beta1");
  EXPECT_EQ(older.max_execution_s, std::nullopt);
  EXPECT_EQ(older.past_execution_s, 8);
}

}  // namespace
}  // namespace berth::api
