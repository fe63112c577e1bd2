#include "apps/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::apps {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kHeader = "apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\n";

api::Problems problems_of(const std::string& body) {
  api::Problems problems;
  read_configuration(std::string(kHeader) + body, "berth.yaml", problems);
  return problems;
}

TEST(Configuration, PrintsItselfAndReadsItBack) {
  Configuration configuration;
  configuration.scheduler_names = {"berth", "gpu"};
  configuration.policies = {
      {{"pack", 7}, {"cost", 2}},
      {{"NVIDIA-L4", 800'000}, {"Tesla-T4", 350'001}, {"old", 1}},
      {{"a", {{"pool", "a"}, {"x/y", ""}}, {{"power", 5}, {"pack", 0}}}, {"b", {{"pool", "b"}}, {}}},
      {{"ml/training", {{"pack", 3}, {"topology", 0}}}, {"batch", {}}}};
  configuration.engine.set_packing = {.enabled = true, .head_bound = Duration::seconds(90), .work_max = 5000};
  configuration.engine.admission.pods_ready = {.enabled = true,
                                               .timeout = Duration::seconds(60),
                                               .recovery_timeout = Duration{},
                                               .block_admission = true,
                                               .timestamp = quota::RequeuingTimestamp::kCreation,
                                               .backoff_limit = 3};
  configuration.engine.admission.usage.resource_weights = {{"cpu", 500}, {"nvidia.com/gpu", 4000}};
  configuration.client.bind_timeout = Duration::millis(2500);
  configuration.volume_bind_timeout = Duration::seconds(30);
  configuration.turn_max = Duration::millis(40);
  configuration.unrequested_gpus = webhook::UnrequestedGpus::kDeny;
  configuration.topology_levels = {{"leaf", "example.com/leaf"}, {"host", "kubernetes.io/hostname"}};
  const std::string text = to_yaml(configuration);
  api::Problems problems;
  EXPECT_EQ(to_yaml(read_configuration(text, "f", problems)), text);
  EXPECT_THAT(problems, IsEmpty());
}

TEST(Configuration, PrintsNoTerminalEscapesAndReadsThemBack) {
  Configuration configuration;
  const std::string odd = "a\x1b[31m\n\t\"\\x1b\u202e\u00e9";
  configuration.client.kubeconfig = configuration.client.context = odd;
  const std::string text = to_yaml(configuration);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  api::Problems problems;
  EXPECT_EQ(read_configuration(text, "f", problems).client.kubeconfig, odd);
  EXPECT_THAT(problems, IsEmpty());
}

struct Case {
  std::string body, expected;
};

void expect_one_problem_each(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    const api::Problems problems = problems_of(each.body);
    ASSERT_THAT(problems, SizeIs(1)) << each.body;
    EXPECT_THAT(api::to_string(problems[0]), HasSubstr(each.expected)) << each.body;
  }
}

TEST(Configuration, ToNameWaitForPodsReadyTurnsItOnAsInKueue) {
  api::Problems problems;
  const std::string text =
      std::string(kHeader) + "waitForPodsReady: {timeout: 5m, requeuingStrategy: {backoffLimitCount: 2}}";
  const quota::WaitForPodsReady ready = read_configuration(text, "f", problems).engine.admission.pods_ready;
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_TRUE(ready.enabled);
  EXPECT_EQ(ready.timeout, Duration::seconds(300));
  EXPECT_EQ(ready.backoff_limit, 2);
  EXPECT_EQ(ready.recovery_timeout, std::nullopt);
  EXPECT_FALSE(Configuration().engine.admission.pods_ready.enabled);
}

TEST(Configuration, ToNameFairSharingTurnsItOnUnlessItSaysOtherwise) {
  const auto fair_of = [](const std::string& body) {
    api::Problems problems;
    auto fair = read_configuration(std::string(kHeader) + body, "f", problems).engine.admission.fair;
    EXPECT_THAT(problems, IsEmpty());
    return fair;
  };
  using quota::FairRule;
  EXPECT_EQ(fair_of(""), std::nullopt);
  EXPECT_EQ(fair_of("fairSharing: {}"),
            (quota::FairRules{FairRule::kLessThanOrEqualToFinalShare, FairRule::kLessThanInitialShare}));
  EXPECT_EQ(fair_of("fairSharing: {preemptionStrategies: [LessThanInitialShare]}"),
            quota::FairRules{FairRule::kLessThanInitialShare});
  EXPECT_EQ(fair_of("fairSharing: {enable: false, preemptionStrategies: [LessThanInitialShare]}"), std::nullopt);
}

TEST(Configuration, SaysWhatIsWrongWithTimesOfQueues) {
  expect_one_problem_each({
      {"fairSharing: {preemptionStrategies: [Nice]}",
       "'Nice' is neither LessThanOrEqualToFinalShare nor LessThanInitialShare"},
      {"fairSharing: {preemptionStrategies: []}", "must name a strategy"},
      {"waitForPodsReady: {timeout: 0s}", "waitForPodsReady.timeout: must be longer than 0"},
      {"waitForPodsReady: {timout: 5m}", "did you mean 'timeout'?"},
      {"waitForPodsReady: {requeuingStrategy: {timestamp: Now}}", "'Now' is neither Eviction nor Creation"},
      {"waitForPodsReady: {requeuingStrategy: {backoffLimitCount: -1}}", "-1 is less than 0; null sets no limit"},
      {"waitForPodsReady: {requeuingStrategy: {backoffBaseSeconds: -1}}", "-1 is less than 0"},
      {"admissionFairSharing: {usageHalfLifeTime: 7}", "a duration is a text with a unit"},
      {"admissionFairSharing: {resourceWeights: {cpu: -1}}", "resourceWeights.cpu: '-1' is no number of at least 0"},
  });
}

TEST(Configuration, SaysWhatIsWrongWithQueuesAndTheirSets) {
  expect_one_problem_each({
      {"queues: {name: a}", "expected a list"},
      {"queues: [{scores: {pack: 1}}]", "berth.yaml:3: queues[0]: a queue needs the name of a LocalQueue"},
      {"queues: [{name: A B}]", "queues[0].name: 'A B' is no queue: write the name of a LocalQueue, or namespace/name"},
      {"queues: [{name: A/b}]", "queues[0].name: 'A/b' is no queue: write the name of a LocalQueue, or namespace/name"},
      {"queues: [{name: a/b/c}]", "'a/b/c' is no queue"},
      {"queues: [{name: a}, {name: a}]", "queues[1].name: 'a' is listed twice; put its weights together"},
      {"queues: [{name: a, scores: {pakc: 1}}]", "queues[0].scores.pakc: no policy is called 'pakc'"},
      {"queues: [{name: a, scores: {node-ports: 1}}]", "'node-ports' is a filter, which has no weight"},
      {"queues: [{name: a, scores: {pack: 10001}}]", "outside 0 to 10000"},
      {"queues:\n- name: a\n  scores:\n    pack: 1\n    cost: -1", "berth.yaml:7: queues[0].scores.cost: weight -1 of"},
      {"scores: {pack: 1}\nqueues:\n- name: b\n- name: a\n  scores:\n    pack: 1\n    cost: 1",
       "berth.yaml:9: queues[1].scores.cost: 'cost' has a weight and no prices to go by"},
      {"queues: [{name: a, weights: {}}]", "unknown field"},
      {"setPacking: true", "setPacking: expected an object"},
      {"setPacking: {headBound: 600}", "setPacking.headBound: a duration is a text with a unit"},
      {"setPacking: {headBound: 0s}", "setPacking.headBound: must be longer than 0"},
      {"setPacking: {maxWork: 0}", "setPacking.maxWork: 0 is less than 1; `enabled: false` turns packing as a set off"},
      {"setPacking: {enable: true}", "did you mean 'enabled'?"},
  });
}

TEST(Configuration, SaysWhatIsWrongWithFileAndLine) {
  expect_one_problem_each({
      {"schedulerName: [berth]", "berth.yaml:3: schedulerName: unknown field; did you mean 'schedulerNames'?"},
      {"unrequestedGpus: refuse", "unrequestedGpus: 'refuse' is none of: ignore, warn, deny"},
      {"schedulerNames: []", "must name at least one scheduler"},
      {"schedulerNames: ['']", "is no scheduler's name"},
      {"schedulerNames: [a, a]", "'a' is named twice"},
      {"scores: {pakc: 1}", "no policy is called 'pakc'"},
      {"scores: {pack: -1}", "outside 0 to 10000"},
      {"scores: {cost: 1}", "berth.yaml:3: scores.cost: 'cost' has a weight and no prices to go by"},
      {"scores:\n  pack: 1\n  cost: 1", "berth.yaml:5: scores.cost: 'cost' has a weight and no prices to go by"},
      {"pools: {name: a}", "expected a list"},
      {"pools: [{nodeSelector: {a: b}}]", "berth.yaml:3: pools[0]: a pool needs a name"},
      {"pools: [{name: A B, nodeSelector: {a: b}}]", "pools[0].name: 'A B' cannot name a pool"},
      {"pools: [{name: a}]", "pools[0]: a pool needs a nodeSelector"},
      {"pools: [{name: a, nodeSelector: {}}]", "pools[0].nodeSelector: must name at least one label"},
      {"pools: [{name: a, nodeSelector: {-: b}}]", "'-: b' is no label"},
      {"pools: [{name: a, nodeSelector: {b: c d}}]", "'b: c d' is no label"},
      {"pools: [{name: a, nodeSelector: {b: c}}, {name: a, nodeSelector: {b: d}}]", "'a' is the name of another pool"},
      {"pools: [{name: a, nodeSelector: {b: c}}, {name: d, nodeSelector: {b: c, e: f}}]",
       "no node is left for this pool"},
      {"pools: [{name: a, nodeSelector: {b: c}, scores: {pakc: 1}}]", "pools[0].scores.pakc: no policy is called"},
      {"pools: [{name: a, nodeSelector: {b: c}, scores: {pack: 10001}}]", "outside 0 to 10000"},
      {"pools:\n- name: a\n  nodeSelector: {b: c}\n  scores:\n    cost: 1",
       "berth.yaml:7: pools[0].scores.cost: 'cost' has a weight and no prices to go by"},
      {"pools: [{name: a, nodeSelector: {b: c}, weights: {}}]", "unknown field"},
      {"prices: [1]", "expected an object"},
      {"prices: {a b: 1}", "'a b' cannot be a GPU model"},
      {"prices: {L4: -1}", "berth.yaml:3: prices.L4: '-1' is no price"},
      {"prices: {L4: 100001}", "'100001' is no price: write dollars for a GPU-hour, 0 to 100000"},
      {"prices: {L4: 0.0000001}", "is no price"},
      {"prices: {L4: '$1'}", "'$1' is no price"},
      {"backoff: {initial: 10s, max: 1s}", "initial must not be longer than max"},
      {"backoff: {initial: 10}", "backoff.initial"},
      {"clientConnection: {bindTimeout: 10s}", "bindTimeout must be shorter"},
      {"turnMax: 15", "turnMax: a duration is a text with a unit"},
      {"leaderElection: {leaseDuration: 15500ms}", "leaseDuration must be whole seconds"},
      {"leaderElection: {renewDeadline: 20s}", "renewDeadline must be shorter"},
      {"leaderElection: {resourceName: ''}", "leaderElection.resourceName"},
      {"leaderElection: {resourceNamespace: A B}", "leaderElection.resourceNamespace"},
      {"http: {bindAddress: 0.0.0.0}", "is not a loopback address"},
      {"http: {port: 70000}", "outside 0 to 65535"},
      {"logging: {level: loud}", "'loud' is none of"},
      {"topologyLevels: []", "topologyLevels: must have at least one level"},
      {"topologyLevels: [{name: rack}]", "topologyLevels[0]: a level needs a name and the key of a node label"},
      {"topologyLevels: [{name: A B, key: k}]", "topologyLevels[0].name"},
      {"topologyLevels: [{name: a, key: k}, {name: b, key: k}]", "topologyLevels[1]: another level has the same name"},
  });
}

TEST(Configuration, OneMistakeHidesNoOther) {
  const auto told = [](const std::string& body) {
    std::string out;
    for (const api::Problem& problem : problems_of(body)) out += api::to_string(problem) + "\n";
    return out;
  };
  const std::string all = told(
      "scores: {pakc: 1}\nbackoff: {initial: x, max: 1s}\nhttp: {bindAddress: 0.0.0.0}\n"
      "leaderElection: {renewDeadline: 20s}");
  for (const char* part :
       {"pakc", "backoff.initial", "is not a loopback address", "renewDeadline must be shorter", "leaderElection"})
    EXPECT_THAT(all, HasSubstr(part));
  EXPECT_THAT(problems_of("leaderElection: {leaseDurations: 60s, renewDeadline: 20s}"), SizeIs(1));
  EXPECT_THAT(problems_of("leaderElection: {leaseDuration: 1x, renewDeadline: 20s}"), SizeIs(1));
  EXPECT_THAT(problems_of("http: {bindAddress: 0.0.0.0, tlsCertFile: 1, tlsPrivateKeyFile: k}"), SizeIs(1));
}

TEST(Configuration, RefusesAnEmptyFileAnotherKindAndAList) {
  api::Problems problems;
  read_configuration("", "f", problems);
  read_configuration("apiVersion: v1\nkind: Pod\n", "f", problems);
  EXPECT_THAT(problems, SizeIs(2));
  problems.clear();
  read_configuration("- apiVersion: berth.dev/v1alpha1\n", "f", problems);
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_THAT(api::to_string(problems[0]), HasSubstr("f:1: expected an object, found a list"));
}

}  // namespace
}  // namespace berth::apps
