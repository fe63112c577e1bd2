#include "bridge/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/to_model.h"

namespace berth::bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

api::Pod pod_with(const std::string& topology, const std::string& owner = "u1") {
  api::Pod pod;
  pod.metadata.namespace_name = "ns";
  pod.metadata.labels = {{"app", "web"}};
  if (!topology.empty()) pod.metadata.annotations.set(std::string(kTopologyAnnotation), topology);
  if (!owner.empty()) pod.metadata.owners.push_back({"batch/v1", "Job", "j", owner, true});
  return pod;
}

std::string problem_of(const std::string& value) {
  return topology_annotation_problem(value, default_topology_levels());
}

TEST(Topology, EachWishIsATermThatSeesThePodsOfTheOwner) {
  const model::Pod pod = to_model(pod_with("required=zone, preferred=rack,apart-required=host"), {});
  const model::Pod sibling = to_model(pod_with("preferred=rack"), {}),
                   other = to_model(pod_with("preferred=rack", "u2"), {});
  const model::Peers& peers = pod.spec->peers;
  ASSERT_THAT(peers.affinity, SizeIs(1));
  EXPECT_EQ(peers.affinity[0].topology_key, "topology.kubernetes.io/zone");
  ASSERT_THAT(peers.preferred, SizeIs(1));
  EXPECT_EQ(peers.preferred[0].term.topology_key, "cloud.provider.com/topology-rack");
  EXPECT_EQ(peers.preferred[0].weight, 100);
  ASSERT_THAT(peers.anti_affinity, SizeIs(1));
  EXPECT_EQ(peers.anti_affinity[0].topology_key, "kubernetes.io/hostname");
  EXPECT_TRUE(peers.affinity[0].peers.matches("ns", {}, *pod.labels, false));
  EXPECT_TRUE(peers.affinity[0].peers.matches("ns", {}, *sibling.labels, false));
  EXPECT_FALSE(peers.affinity[0].peers.matches("ns", {}, *other.labels, false));
}

TEST(Topology, AWishToBeApartWeighsAgainst) {
  const model::Pod pod = to_model(pod_with("apart-preferred=rack"), {});
  ASSERT_THAT(pod.spec->peers.preferred, SizeIs(1));
  EXPECT_EQ(pod.spec->peers.preferred[0].weight, -100);
}

TEST(Topology, APodWithoutTheAnnotationHasItsOwnLabelsAlone) {
  const model::Pod pod = to_model(pod_with(""), {});
  EXPECT_EQ(*pod.labels, (model::Labels{{"app", "web"}}));
  EXPECT_TRUE(pod.spec->peers.empty());
}

TEST(Topology, APodWithoutAControllerAsksNothing) {
  const model::Pod pod = to_model(pod_with("required=rack", ""), {});
  EXPECT_EQ(*pod.labels, (model::Labels{{"app", "web"}}));
  EXPECT_EQ(pod.spec->peers, model::Peers{});
}

TEST(Topology, LevelsAreThoseOfTheConfiguration) {
  const TopologyLevels levels = {{"spine", "example.com/spine"}, {"leaf", "example.com/leaf"}};
  const model::Pod pod = to_model(pod_with("required=leaf"), {}, levels);
  ASSERT_THAT(pod.spec->peers.affinity, SizeIs(1));
  EXPECT_EQ(pod.spec->peers.affinity[0].topology_key, "example.com/leaf");
  EXPECT_THAT(topology_annotation_problem("required=rack", levels), HasSubstr("these are: spine, leaf"));
}

TEST(Topology, WhatMakesNoSenseIsSaidWithAWayOut) {
  EXPECT_EQ(problem_of("required=rack"), "");
  EXPECT_EQ(problem_of("preferred=rack,preferred=block,apart-preferred=host"), "");
  EXPECT_THAT(problem_of(""), HasSubstr("'' is no wish; write required="));
  EXPECT_THAT(problem_of("rack"), HasSubstr("'rack' is no wish"));
  EXPECT_THAT(problem_of("required=rack,"), HasSubstr("'' is no wish"));
  EXPECT_THAT(problem_of("needed=rack"), HasSubstr("'needed=rack' is no wish"));
  EXPECT_THAT(problem_of("required="), HasSubstr("'' is no level"));
  EXPECT_THAT(problem_of("required=Rack"), HasSubstr("'Rack' is no level of the topology; these are: zone, block"));
  EXPECT_THAT(problem_of("required=rack,required=rack"), HasSubstr("stands there twice"));
  EXPECT_THAT(problem_of("required=rack,apart-required=rack"), HasSubstr("exclude each other"));
  EXPECT_THAT(problem_of("apart-preferred=zone,preferred=host"), HasSubstr("exclude each other"));
  EXPECT_EQ(problem_of("required=\x1b[31m").find('\x1b'), std::string::npos);
}

TEST(Topology, KueuesWordsNameTheNodeLabelItself) {
  const auto peers_of = [](const std::map<std::string, std::string>& annotations, bool of_group = false) {
    api::Pod pod = pod_with("required=rack");
    pod.metadata.annotations = {};
    for (const auto& [key, value] : annotations) pod.metadata.annotations.set(key, value);
    if (of_group) {
      pod.metadata.owners.clear();
      pod.metadata.labels.set("kueue.x-k8s.io/pod-group-name", "train");
    }
    return to_model(pod, {}).spec->peers;
  };
  const std::string required = "kueue.x-k8s.io/podset-required-topology",
                    preferred = "kueue.x-k8s.io/podset-preferred-topology";
  const model::Peers rack = peers_of({{required, "example.com/rack"}});
  ASSERT_EQ(rack.affinity.size(), 1u);
  EXPECT_EQ(rack.affinity[0].topology_key, "example.com/rack");
  const model::Peers soft = peers_of({{preferred, "example.com/rack"}});
  EXPECT_TRUE(soft.affinity.empty());
  ASSERT_EQ(soft.preferred.size(), 1u);
  EXPECT_GT(soft.preferred[0].weight, 0);
  EXPECT_EQ(peers_of({{required, "example.com/rack"}, {"berth.dev/topology", "preferred=host"}}).affinity.size(), 0u);
  EXPECT_EQ(peers_of({{required, "example.com/rack"}}, true).affinity.size(), 1u) << "a group has no controller";
  EXPECT_THAT(peers_of({{required, "a b"}}).problem, HasSubstr("'a b' is no node label"));
  const std::string slices = "kueue.x-k8s.io/podset-slice-required-topology";
  EXPECT_THAT(peers_of({{slices, "rack"}}).problem, HasSubstr("and this pod is of none. Name a queue"));
  EXPECT_EQ(peers_of({{slices, "rack"}, {"kueue.x-k8s.io/workload", "train"}}).problem, "");
  EXPECT_EQ(peers_of({{slices, "rack"}, {"berth.dev/topology", "preferred=host"}}).problem, "");
  EXPECT_TRUE(peers_of({{"kueue.x-k8s.io/podset-unconstrained-topology", "true"}}).empty());
}

// Kueue's words are about one set; sets of a group, and Berth's word, are about all that the owner has.
TEST(Topology, WhoIsTogetherWithWhom) {
  const auto seen_as = [](const std::map<std::string, std::string>& annotations, const std::string& set) {
    api::Pod pod = pod_with("required=rack");
    pod.metadata.annotations = {};
    for (const auto& [key, value] : annotations) pod.metadata.annotations.set(key, value);
    if (!set.empty()) pod.metadata.labels.set("kueue.x-k8s.io/podset", set);
    return *to_model(pod, {}).labels->find(kOwnerLabel);
  };
  const std::string required = "kueue.x-k8s.io/podset-required-topology", group = "kueue.x-k8s.io/podset-group-name";
  EXPECT_EQ(seen_as({{required, "rack"}}, ""), seen_as({{required, "rack"}}, "main"));
  EXPECT_NE(seen_as({{required, "rack"}}, "launcher"), seen_as({{required, "rack"}}, "worker"));
  EXPECT_EQ(seen_as({{required, "rack"}, {group, "all"}}, "launcher"),
            seen_as({{required, "rack"}, {group, "all"}}, "worker"));
  EXPECT_EQ(seen_as({{"berth.dev/topology", "required=rack"}}, "launcher"),
            seen_as({{"berth.dev/topology", "required=rack"}}, "worker"));
}

TEST(Topology, WhatMakesNoSenseKeepsThePodAsItsProblem) {
  const model::Pod pod = to_model(pod_with("required=row"), {});
  EXPECT_EQ(pod.spec->peers.problem,
            "annotation berth.dev/topology: 'row' is no level of the topology; these are: zone, block, rack, host.");
  EXPECT_TRUE(pod.spec->peers.empty());
}

}  // namespace
}  // namespace berth::bridge
