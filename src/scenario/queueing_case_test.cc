#include "scenario/queueing_case.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/quantity.h"

namespace berth::scenario {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kTwoQueues = R"(
title: two queues that lend to each other
config: {}
objects:
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: h100}, spec: {}}
- apiVersion: kueue.x-k8s.io/v1beta2
  kind: ClusterQueue
  metadata: {name: red}
  spec:
    cohortName: all
    namespaceSelector: {}
    preemption: {reclaimWithinCohort: Any}
    resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: ClusterQueue
  metadata: {name: blue}
  spec:
    cohort: all
    namespaceSelector: {}
    resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: red, namespace: default}, spec: {clusterQueue: red}}
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: blue, namespace: default}, spec: {clusterQueue: blue}}
steps:
- create:
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: Workload
    metadata: {name: borrower, namespace: default}
    spec:
      queueName: blue
      podSets:
      - {name: main, count: 6, template: {spec: {containers: [{name: c, image: i, resources: {requests: {nvidia.com/gpu: 1}}}]}}}
- create:
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: Workload
    metadata: {name: owner, namespace: default}
    spec:
      queueName: red
      podSets:
      - {name: main, count: 1, template: {spec: {containers: [{name: c, image: i, resources: {requests: {nvidia.com/gpu: 4}}}]}}}
- finish: [owner]
)";

TEST(QueueingCase, WhatWasLentIsTakenBackAndComesAgain) {
  const auto played = play_queueing_case(kTwoQueues, "two.yaml");
  ASSERT_TRUE(played) << played.error().message;
  const Json steps = Json::parse(*played)["steps"];
  EXPECT_EQ(steps[0]["clusterQueues"]["blue"]["reservation"]["h100"]["nvidia.com/gpu"]["borrowed"], "2");
  const Json& evicted = steps[1]["events"][0]["event"] == "Evicted" ? steps[1]["events"][0] : steps[1]["events"][1];
  EXPECT_EQ(evicted["workload"], "borrower");
  EXPECT_EQ(evicted["preemption"], "InCohortReclamation");
  EXPECT_EQ(evicted["preemptorPath"], "/all/red");
  EXPECT_EQ(steps[1]["workloads"]["owner"]["state"], "Admitted");
  EXPECT_EQ(steps[1]["workloads"]["borrower"]["message"],
            "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor h100, 2 "
            "more needed");
  EXPECT_EQ(steps[2]["workloads"]["borrower"]["state"], "Admitted");
}

TEST(QueueingCase, PodsThatAreDoneGiveTheirQuotaBack) {
  for (const char* step : {"reclaimable: {borrower: {main: 2}}", "reclaimable: {borrower: [{name: main, count: 2}]}",
                           "reclaimable: [{workload: borrower, podSets: [{name: main, count: 2}]}]"}) {
    std::string text = kTwoQueues;
    text.insert(text.find("- create:\n", text.find("name: borrower")), std::string("- ") + step + "\n");
    const auto played = play_queueing_case(text, "two.yaml");
    ASSERT_TRUE(played) << played.error().message;
    const Json steps = Json::parse(*played)["steps"];
    EXPECT_EQ(steps[1]["clusterQueues"]["blue"]["reservation"]["h100"]["nvidia.com/gpu"]["total"], "4") << step;
    EXPECT_EQ(steps[2]["workloads"]["owner"]["state"], "Admitted");
    EXPECT_EQ(steps[2]["workloads"]["borrower"]["state"], "Admitted") << "its four are its own";
  }
}

TEST(QueueingCase, WhatIsNoCaseIsToldWithItsLine) {
  const auto error = [](std::string text, std::string_view from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    const auto played = play_queueing_case(text, "bad.yaml");
    return played ? "" : played.error().message;
  };
  EXPECT_EQ(error(kTwoQueues, "finish: [owner]", "finish: [nobody]"), "bad.yaml:44: there is no workload 'nobody'");
  EXPECT_EQ(error(kTwoQueues, "finish: [owner]", "finnish: [owner]"),
            "bad.yaml:44: 'finnish' is none of create, finish, reclaimable, delete, patch");
  EXPECT_EQ(error(kTwoQueues, "finish: [owner]", "finish: owner"), "bad.yaml:44: finish is a list");
  EXPECT_EQ(error(kTwoQueues, "metadata: {name: blue}", "metadata: {name: red}"),
            "bad.yaml:16: there is a ClusterQueue 'red' already; names are unique in a case");
  EXPECT_EQ(error(kTwoQueues, "config: {}", "config: {waitForPodsReady: {enable: true}}"),
            "bad.yaml:3: config: 'waitForPodsReady' is not played; a case may set fairSharing");
  EXPECT_EQ(error(kTwoQueues, "config: {}", "config: {fairSharing: {enable: true}}"), "");
  EXPECT_NE(error(kTwoQueues, "reclaimWithinCohort: Any", "reclaimWithinCohort: Some").find("supported values"),
            std::string::npos);
  EXPECT_NE(error(kTwoQueues, "nominalQuota: 4", "nominalQuota: -4").find("bad.yaml:15: "), std::string::npos);
  EXPECT_NE(error(kTwoQueues, "kind: ResourceFlavor", "kind: ResourceFlavour").find("none of Kueue's kinds"),
            std::string::npos);
}

// Quantities as numbers; texts, which may differ in their wording, left out.
void normalize(Json& json) {
  if (json.is_array())
    for (Json& item : json) normalize(item);
  if (!json.is_object()) return;
  json.erase("message");
  for (auto& [key, value] : json.items()) {
    const bool amounts = key == "resourceUsage" || (value.is_object() && value.contains("borrowed"));
    if (!amounts) {
      normalize(value);
      continue;
    }
    for (auto& [name, amount] : value.items()) amount = *model::parse_quantity(amount.get<std::string>(), 3);
  }
}

// What a recorded outcome says firmly: who is admitted with what, who is evicted by whom and why, and what is in use.
Json firm(Json outcome) {
  normalize(outcome);
  for (Json& step : outcome["steps"]) {
    for (auto& [name, workload] : step["workloads"].items())
      if (workload["state"] == "Pending") workload.erase("reason");
    std::sort(step["events"].begin(), step["events"].end());
  }
  return outcome["steps"];
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Cases that Kueue was given, with what it did: the folder kueue of the one that BERTH_CASES names. 088 is Berth's own
// way: docs/differences.md.
TEST(QueueingCase, AgreesWithTheOutcomesOfKueue) {
  const char* const folder = std::getenv("BERTH_CASES");  // deterministic: a test
  if (folder == nullptr) GTEST_SKIP() << "BERTH_CASES names no folder with recorded cases";
  int compared = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(folder) / "kueue" / "cases")) {
    const std::string name = entry.path().stem();
    const auto played = play_queueing_case(read(entry.path()), entry.path());
    ASSERT_TRUE(played) << played.error().message;
    ++compared;
    if (name == "088") continue;
    const Json outcome = Json::parse(read(fs::path(folder) / "kueue" / "outcomes" / (name + ".json")));
    EXPECT_EQ(firm(Json::parse(*played)), firm(outcome)) << name;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace berth::scenario
