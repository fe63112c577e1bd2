#include "bridge/peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/decode.h"

namespace berth::bridge {
namespace {

using model::NodeSelectorRequirement;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Op = model::NodeSelectorOperator;

// Peers of a pod in namespace "ns" with labels app=web, rev=7, whose spec has these fields (JSON).
model::Peers peers(const std::string& fields) {
  const auto pod = api::decode_pod(
      R"({"metadata":{"name":"p","namespace":"ns","labels":{"app":"web","rev":"7"}},"spec":{)" + fields + "}}");
  EXPECT_TRUE(pod) << pod.error().message;
  return pod ? peers_of(*pod) : model::Peers{};
}
model::Peers affinity(const std::string& term) {
  return peers(
      R"("affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone",)" + term +
      "}]}}");
}
model::TopologySpreadConstraint spread(const std::string& rest) {
  const model::Peers all =
      peers(R"("topologySpreadConstraints":[{"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule")" +
            rest + "}]");
  EXPECT_THAT(all.spread, SizeIs(1));
  return all.spread.at(0);
}

// Of a pod with these labels (JSON) that an object of this kind controls.
model::Peers peers_of_child(const std::string& kind, const std::string& labels, const std::string& spec = "{}") {
  const auto pod = api::decode_pod(R"({"metadata":{"name":"p","namespace":"ns","labels":)" + labels +
                                   R"(,"ownerReferences":[{"apiVersion":"apps/v1","kind":")" + kind +
                                   R"(","name":"o","uid":"u","controller":true}]},"spec":)" + spec + "}");
  EXPECT_TRUE(pod) << pod.error().message;
  return pod ? peers_of(*pod) : model::Peers{};
}

TEST(Peers, ReplicasSpreadOverZonesByDefault) {
  const auto replica = peers_of_child("ReplicaSet", R"({"app":"web","pod-template-hash":"5f","extra":"1"})");
  ASSERT_THAT(replica.spread, SizeIs(1));
  const model::TopologySpreadConstraint& rule = replica.spread[0];
  EXPECT_TRUE(rule.by_default);
  EXPECT_FALSE(rule.required);
  EXPECT_EQ(rule.topology_key, "topology.kubernetes.io/zone");
  EXPECT_THAT(rule.peers.namespaces, ElementsAre("ns"));
  EXPECT_TRUE(rule.peers.skips_terminating);
  EXPECT_THAT(rule.peers.pods.requirements, ElementsAre(NodeSelectorRequirement{"pod-template-hash", Op::kIn, {"5f"}}));
  const auto ordinal =
      peers_of_child("StatefulSet", R"({"app":"db","statefulset.kubernetes.io/pod-name":"db-0",)"
                                    R"("apps.kubernetes.io/pod-index":"0","controller-revision-hash":"db-1"})");
  ASSERT_THAT(ordinal.spread, SizeIs(1));
  EXPECT_THAT(ordinal.spread[0].peers.pods.requirements, ElementsAre(NodeSelectorRequirement{"app", Op::kIn, {"db"}}));
}

TEST(Peers, NothingIsSpreadByDefaultThatIsNoReplicaOrSaysForItself) {
  EXPECT_THAT(peers("").spread, IsEmpty());
  EXPECT_THAT(peers_of_child("Job", R"({"app":"web"})").spread, IsEmpty());
  EXPECT_THAT(peers_of_child("DaemonSet", R"({"app":"web"})").spread, IsEmpty());
  EXPECT_THAT(peers_of_child("ReplicaSet", "{}").spread, IsEmpty());
  const auto own = peers_of_child(
      "ReplicaSet", R"({"app":"web"})",
      R"({"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"rack","whenUnsatisfiable":"DoNotSchedule"}]})");
  ASSERT_THAT(own.spread, SizeIs(1));
  EXPECT_FALSE(own.spread[0].by_default);
}

TEST(Peers, ATermWithoutNamespacesNamesThePodsOwn) {
  const auto own = affinity(R"("labelSelector":{})").affinity.at(0);
  EXPECT_EQ(own.topology_key, "zone");
  EXPECT_THAT(own.peers.namespaces, ElementsAre("ns"));
  EXPECT_FALSE(own.peers.namespace_selector);
  EXPECT_FALSE(own.peers.skips_terminating);
  EXPECT_THAT(affinity(R"("namespaces":["z","a","z"])").affinity.at(0).peers.namespaces, ElementsAre("a", "z"));
}

TEST(Peers, ANamespaceSelectorStandsAloneUnlessNamespacesAreNamedToo) {
  const auto every = affinity(R"("namespaceSelector":{})").affinity.at(0).peers;
  EXPECT_THAT(every.namespaces, IsEmpty());
  ASSERT_TRUE(every.namespace_selector);
  EXPECT_TRUE(every.namespace_selector->matches({}));
  const auto some =
      affinity(R"("namespaceSelector":{"matchLabels":{"team":"x"}},"namespaces":["a"])").affinity.at(0).peers;
  EXPECT_THAT(some.namespaces, ElementsAre("a"));
  EXPECT_FALSE(some.namespace_selector->matches({}));
}

TEST(Peers, ANullSelectorSelectsNothingAndAnEmptyOneEverything) {
  EXPECT_FALSE(affinity(R"("labelSelector":null)").affinity.at(0).peers.pods.matches({{"app", "web"}}));
  EXPECT_TRUE(affinity(R"("labelSelector":{})").affinity.at(0).peers.pods.matches({{"app", "web"}}));
}

TEST(Peers, MatchLabelsAndExpressionsAreAllNeeded) {
  const auto pods =
      affinity(
          R"("labelSelector":{"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}],"matchLabels":{"b":"2","a":"1"}})")
          .affinity.at(0)
          .peers.pods;
  EXPECT_THAT(pods.requirements,
              ElementsAre(NodeSelectorRequirement{"a", Op::kIn, {"1"}}, NodeSelectorRequirement{"b", Op::kIn, {"2"}},
                          NodeSelectorRequirement{"tier", Op::kDoesNotExist, {}}));
}

TEST(Peers, LabelKeysTakeThePodsOwnValuesAndKeysThatItLacksAreIgnored) {
  const auto pods = affinity(R"("labelSelector":{},"matchLabelKeys":["app","none"],"mismatchLabelKeys":["rev","gone"])")
                        .affinity.at(0)
                        .peers.pods;
  EXPECT_THAT(pods.requirements, ElementsAre(NodeSelectorRequirement{"app", Op::kIn, {"web"}},
                                             NodeSelectorRequirement{"rev", Op::kNotIn, {"7"}}));
}

TEST(Peers, WhatTheApiServerHasMergedAlreadyIsNotAddedAgain) {
  const auto pods =
      affinity(
          R"("labelSelector":{"matchExpressions":[{"key":"app","operator":"In","values":["web"]}]},"matchLabelKeys":["app"])")
          .affinity.at(0)
          .peers.pods;
  EXPECT_THAT(pods.requirements, ElementsAre(NodeSelectorRequirement{"app", Op::kIn, {"web"}}));
}

TEST(Peers, PreferredAntiAffinityWeighsAgainst) {
  const std::string preferred =
      R"({"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":30,"podAffinityTerm":{"topologyKey":"zone"}}],)"
      R"("requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"host"}]})";
  const auto all = peers(R"("affinity":{"podAffinity":)" + preferred + R"(,"podAntiAffinity":)" + preferred + "}");
  ASSERT_THAT(all.preferred, SizeIs(2));
  EXPECT_EQ(all.preferred[0].weight, 30);
  EXPECT_EQ(all.preferred[1].weight, -30);
  EXPECT_EQ(all.preferred[1].term.topology_key, "zone");
  EXPECT_THAT(all.affinity, SizeIs(1));
  ASSERT_THAT(all.anti_affinity, SizeIs(1));
  EXPECT_EQ(all.anti_affinity[0].topology_key, "host");
}

TEST(Peers, SpreadCountsLivingPodsOfTheOwnNamespace) {
  const auto constraint = spread(R"(,"labelSelector":{"matchLabels":{"app":"web"}},"matchLabelKeys":["rev"])");
  EXPECT_EQ(constraint.max_skew, 2);
  EXPECT_EQ(constraint.topology_key, "zone");
  EXPECT_TRUE(constraint.required);
  EXPECT_THAT(constraint.peers.namespaces, ElementsAre("ns"));
  EXPECT_TRUE(constraint.peers.skips_terminating);
  EXPECT_THAT(constraint.peers.pods.requirements, ElementsAre(NodeSelectorRequirement{"app", Op::kIn, {"web"}},
                                                              NodeSelectorRequirement{"rev", Op::kIn, {"7"}}));
}

TEST(Peers, SpreadHasTheApiServersDefaults) {
  const auto plain = spread("");
  EXPECT_EQ(plain.min_domains, 1);
  EXPECT_TRUE(plain.honors_affinity);
  EXPECT_FALSE(plain.honors_taints);
  const auto other = spread(R"(,"minDomains":3,"nodeAffinityPolicy":"Ignore","nodeTaintsPolicy":"Honor")");
  EXPECT_EQ(other.min_domains, 3);
  EXPECT_FALSE(other.honors_affinity);
  EXPECT_TRUE(other.honors_taints);
  EXPECT_FALSE(
      peers(R"("topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"ScheduleAnyway"}])")
          .spread.at(0)
          .required);
}

TEST(Peers, ASpreadSelectorWithoutRequirementsCountsNothing) {
  EXPECT_FALSE(spread("").peers.pods.matches({{"app", "web"}}));
  EXPECT_FALSE(spread(R"(,"labelSelector":{})").peers.pods.matches({{"app", "web"}}));
  EXPECT_FALSE(spread(R"(,"labelSelector":{},"matchLabelKeys":["none"])").peers.pods.matches({{"app", "web"}}));
  EXPECT_TRUE(spread(R"(,"labelSelector":{},"matchLabelKeys":["app"])").peers.pods.matches({{"app", "web"}}));
}

TEST(Peers, APodThatAsksNothingHasNone) {
  EXPECT_TRUE(peers(R"("affinity":{"podAffinity":{},"podAntiAffinity":null},"topologySpreadConstraints":[])").empty());
}

}  // namespace
}  // namespace berth::bridge
