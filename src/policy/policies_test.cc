// Every policy by itself: which nodes a filter turns away and in which words, and the exact points of a score.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/testing.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;
using model::NodeSelectorOperator;
using model::TaintEffect;
using model::TolerationOperator;

constexpr const char* kGpu = "nvidia.com/gpu";

const PolicyInfo& policy_named(std::string_view name) {
  for (const PolicyInfo* policy : all_policies())
    if (policy->name == name) return *policy;
  throw std::out_of_range(std::string(name));
}

// One node with what runs on it, and a pod that looks at it.
struct Scene {
  explicit Scene(const model::Node& object, const std::vector<model::Pod>& running = {},
                 const NodeCatalog& catalog = {})
      : state(catalog), node(state.upsert_node(object)) {
    int i = 0;
    for (model::Pod pod : running) {
      pod.uid += std::to_string(i++);
      state.assign(state.add_pod(model::Pod(pod)), node, PodPhase::kBound);
    }
  }
  const PodClass& class_of(const model::Pod& pod) {
    const PodSlot slot = state.find_pod(pod.uid).valid() ? state.find_pod(pod.uid) : state.add_pod(model::Pod(pod));
    return state.pod_class(state.pod(slot).cls);
  }
  // "text (detail); …" of the filter's reasons; "" when the pod fits.
  std::string why_not(std::string_view filter, const model::Pod& pod) {
    const PodClass& cls = class_of(pod);
    Reasons reasons;
    policy_named(filter).filter(cls, state.view(node), reasons);
    std::string out;
    for (const Reason& reason : reasons) {
      out += (out.empty() ? "" : "; ") + std::string(reason.info->text);
      if (reason.info->names_resource) out += " " + state.resources().name(reason.resource);
      if (reason.info->detail != nullptr) out += " (" + reason.info->detail(cls, state.view(node), reason) + ")";
    }
    return out;
  }
  bool fits(std::string_view filter, const model::Pod& pod) { return why_not(filter, pod).empty(); }
  int32_t score(std::string_view name, const model::Pod& pod) {
    return policy_named(name).score(class_of(pod), state.view(node));
  }

  // Pods like these, which need not have a place, make the mix of requests.
  void see(const std::vector<model::Pod>& typical) {
    for (const model::Pod& pod : typical) state.mutable_mix().observe(class_of(pod), state.resources());
    state.mutable_mix().settle();
  }

  State state;
  NodeSlot node;
};

model::Node tainted(const model::Taint& taint) {
  model::Node node = make_node("a");
  return node.taints = {taint}, node;
}
model::Node labelled(const model::Labels& labels) {
  model::Node node = make_node("a");
  return node.labels = labels, node;
}
model::Pod tolerating(const model::Toleration& toleration) {
  return with_spec(make_pod("p"), [&](auto& spec) { spec.tolerations = {toleration}; });
}
model::Pod requiring(const model::NodeSelectorRequirement& requirement) {
  return with_spec(make_pod("p"), [&](auto& spec) { spec.affinity.required = {{{requirement}, {}}}; });
}
model::Pod with_port(const model::HostPort& port) {
  return with_spec(make_pod("p"), [&](auto& spec) { spec.host_ports = {port}; });
}

TEST(TaintToleration, EveryOperatorAndEffect) {
  struct Case {
    model::Toleration toleration;
    model::Taint taint;
    bool fits;
  };
  const model::Taint gpu{"gpu", "true", TaintEffect::kNoSchedule};
  const std::vector<Case> cases = {
      {{"gpu", "true", TolerationOperator::kEqual, true, {}}, gpu, true},
      {{"gpu", "no", TolerationOperator::kEqual, true, {}}, gpu, false},
      {{"other", "true", TolerationOperator::kEqual, true, {}}, gpu, false},
      {{"gpu", "", TolerationOperator::kExists, true, {}}, gpu, true},
      {{"", "", TolerationOperator::kExists, true, {}}, gpu, true},
      {{"gpu", "true", TolerationOperator::kEqual, false, TaintEffect::kNoSchedule}, gpu, true},
      {{"gpu", "true", TolerationOperator::kEqual, false, TaintEffect::kNoExecute}, gpu, false},
      {{"x", "", TolerationOperator::kExists, true, {}}, {"gpu", "", TaintEffect::kNoExecute}, false},
      {{"x", "", TolerationOperator::kExists, true, {}}, {"gpu", "", TaintEffect::kPreferNoSchedule}, true},
      {{"level", "5", TolerationOperator::kGt, true, {}}, {"level", "6", TaintEffect::kNoSchedule}, true},
      {{"level", "5", TolerationOperator::kGt, true, {}}, {"level", "5", TaintEffect::kNoSchedule}, false},
      {{"level", "5", TolerationOperator::kLt, true, {}}, {"level", "4", TaintEffect::kNoSchedule}, true},
      {{"level", "5", TolerationOperator::kLt, true, {}}, {"level", "low", TaintEffect::kNoSchedule}, false},
  };
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(Scene(tainted(cases[i].taint)).fits("taint-toleration", tolerating(cases[i].toleration)), cases[i].fits)
        << i;
}

TEST(TaintToleration, NamesTheTaint) {
  EXPECT_EQ(Scene(tainted({"gpu", "true", TaintEffect::kNoSchedule})).why_not("taint-toleration", make_pod("p")),
            "node(s) had untolerated taint(s) (taint gpu=true:NoSchedule)");
}

TEST(NodeAffinity, EveryOperator) {
  struct Case {
    model::NodeSelectorRequirement requirement;
    bool on_l4, on_bare;
  };
  const std::vector<Case> cases = {
      {{"gpu", NodeSelectorOperator::kIn, {"a100", "4"}}, true, false},
      {{"gpu", NodeSelectorOperator::kIn, {"a100"}}, false, false},
      {{"gpu", NodeSelectorOperator::kNotIn, {"4"}}, false, true},
      {{"gpu", NodeSelectorOperator::kExists, {}}, true, false},
      {{"gpu", NodeSelectorOperator::kDoesNotExist, {}}, false, true},
      {{"gpu", NodeSelectorOperator::kGt, {"3"}}, true, false},
      {{"gpu", NodeSelectorOperator::kGt, {"4"}}, false, false},
      {{"gpu", NodeSelectorOperator::kLt, {"5"}}, true, false},
      {{"gpu", NodeSelectorOperator::kLt, {"x"}}, false, false},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(Scene(labelled({{"gpu", "4"}})).fits("node-affinity", requiring(cases[i].requirement)), cases[i].on_l4)
        << i;
    EXPECT_EQ(Scene(labelled({})).fits("node-affinity", requiring(cases[i].requirement)), cases[i].on_bare) << i;
  }
}

TEST(NodeAffinity, TermsAreOredAndAnEmptyTermMatchesNothing) {
  const model::NodeSelectorTerm zone{{{"zone", NodeSelectorOperator::kIn, {"x"}}}, {}};
  const model::NodeSelectorTerm here{{}, {{"metadata.name", NodeSelectorOperator::kIn, {"a"}}}};
  const auto pod = [](std::vector<model::NodeSelectorTerm> terms) {
    return with_spec(make_pod("p"), [&](auto& spec) { spec.affinity.required = terms; });
  };
  EXPECT_TRUE(Scene(make_node("a")).fits("node-affinity", pod({zone, here})));
  EXPECT_FALSE(Scene(make_node("b")).fits("node-affinity", pod({zone, here})));
  EXPECT_FALSE(Scene(make_node("a")).fits("node-affinity", pod({{}})));
  EXPECT_FALSE(Scene(make_node("a")).fits("node-affinity", pod({})));
}

TEST(NodeAffinity, SaysWhichLabelIsWrong) {
  const auto pod = with_spec(make_pod("p"), [](auto& spec) { spec.node_selector.set("zone", "x"); });
  EXPECT_EQ(Scene(labelled({{"zone", "y"}})).why_not("node-affinity", pod),
            "node(s) didn't match Pod's node affinity/selector (asks for label zone=x, the node has 'y')");
  EXPECT_EQ(Scene(labelled({})).why_not("node-affinity", requiring({"gpu", NodeSelectorOperator::kIn, {"a", "b"}})),
            "node(s) didn't match Pod's node affinity/selector (asks for gpu In [a b], the node lacks the label)");
}

TEST(NodeNameFields, NamesTheNodesThatThePodAsksFor) {
  const auto pod = with_spec(make_pod("p"), [](auto& spec) {
    spec.affinity.required = {{{}, {{"metadata.name", NodeSelectorOperator::kIn, {"b", "c"}}}}};
  });
  EXPECT_TRUE(Scene(make_node("b")).fits("node-name-fields", pod));
  EXPECT_EQ(Scene(make_node("a")).why_not("node-name-fields", pod),
            "node(s) didn't satisfy plugin(s) [NodeAffinity] (the pod asks for metadata.name in [b c])");
}

TEST(NodeUnschedulable, OnlyTheTolerationOfItsTaintHelps) {
  model::Node node = make_node("a");
  node.unschedulable = true;
  EXPECT_TRUE(Scene(node).why_not("node-unschedulable", make_pod("p")).starts_with("node(s) were unschedulable"));
  EXPECT_TRUE(
      Scene(node).fits("node-unschedulable",
                       tolerating({"node.kubernetes.io/unschedulable", "", TolerationOperator::kExists, true, {}})));
  EXPECT_FALSE(Scene(node).fits("node-unschedulable",
                                tolerating({"node.kubernetes.io/unschedulable", "", TolerationOperator::kExists, false,
                                            TaintEffect::kNoExecute})));
}

TEST(NodePorts, ClashByPortProtocolAndAddress) {
  struct Case {
    model::HostPort taken, wanted;
    bool fits;
  };
  const std::vector<Case> cases = {
      {{.port = 80}, {.port = 80}, false},
      {{.port = 80}, {.port = 81}, true},
      {{.port = 80}, {.protocol = model::Protocol::kUdp, .port = 80}, true},
      {{.ip = "10.0.0.1", .port = 80}, {.ip = "10.0.0.2", .port = 80}, true},
      {{.ip = "10.0.0.1", .port = 80}, {.ip = "10.0.0.1", .port = 80}, false},
      {{.ip = "10.0.0.1", .port = 80}, {.port = 80}, false},
  };
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(Scene(make_node("a"), {with_port(cases[i].taken)}).fits("node-ports", with_port(cases[i].wanted)),
              cases[i].fits)
        << i;
  EXPECT_EQ(Scene(make_node("a"), {with_port({.port = 80})}).why_not("node-ports", with_port({.port = 80})),
            "node(s) didn't have free ports for the requested pod ports (host port 80 is taken)");
}

TEST(NodeResources, EachShortageIsAReasonWithItsArithmetic) {
  Scene scene(make_node("a", {{kGpu, 8}, {"pods", 1}}), {make_pod("r", {{kGpu, 6}})});
  EXPECT_EQ(
      scene.why_not("node-resources", make_pod("p", {{"cpu", 70'500}, {kGpu, 4}})),
      "Insufficient cpu (asks 70500m, free 64 of 64, short by 6500m); Too many pods (asks 1, free 0 of 1, short by 1); "
      "Insufficient nvidia.com/gpu (asks 4, free 2 of 8, short by 2)");
}

TEST(NodeResources, NothingAskedIsNeverShort) {
  Scene scene(make_node("a", {{"cpu", 100}}), {make_pod("r", {{"cpu", 900}})});
  EXPECT_TRUE(scene.fits("node-resources", make_pod("p", {{"cpu", 0}})));
  EXPECT_FALSE(scene.fits("node-resources", make_pod("q", {{"cpu", 1}})));
}

TEST(Pack, APartlyUsedNodeBeatsAnEmptyOneAndTheTightestFitWins) {
  const auto points = [](int used, int asked) {
    std::vector<model::Pod> running;
    if (used > 0) running.push_back(make_pod("r", {{kGpu, used}}));
    return Scene(make_node("a", {{kGpu, 8}}), running).score("pack", make_pod("p", {{kGpu, asked}}));
  };
  EXPECT_EQ(points(0, 8), 500);              // 500 / (1 + 0 left)
  EXPECT_EQ(points(0, 1), 500 / 8);          // 7 left
  EXPECT_EQ(points(4, 4), 500 + 300 + 100);  // fills it: in use, half of it
  EXPECT_EQ(points(4, 1), 125 + 300 + 100);
  EXPECT_EQ(points(7, 1), 500 + 300 + 175);
  for (int used = 1; used < 8; ++used) EXPECT_GT(points(used, 1), points(0, 1)) << used;
}

TEST(Pack, WithoutGpusItFillsCpuAndMemory) {
  const auto pod = with_spec(make_pod("p", {{"cpu", 16'000}, {"memory", int64_t{64} << 30}}),
                             [](auto& spec) { spec.placement = model::Placement::kPack; });
  EXPECT_EQ(Scene(make_node("a")).score("pack", pod), 250);
  EXPECT_EQ(Scene(make_node("a"), {make_pod("r", {{"cpu", 32'000}})}).score("pack", pod), (750 + 250) / 2);
}

TEST(Spread, MeanFreeShareAfterThePodLands) {
  const auto pod = make_pod("p", {{"cpu", 16'000}, {"memory", int64_t{128} << 30}});
  EXPECT_EQ(Scene(make_node("a")).score("spread", pod), (750 + 500) / 2);
  const auto gpu = with_spec(make_pod("p", {{"cpu", 16'000}, {"memory", int64_t{128} << 30}, {kGpu, 2}}),
                             [](auto& spec) { spec.placement = model::Placement::kSpread; });
  EXPECT_EQ(Scene(make_node("a", {{kGpu, 8}})).score("spread", gpu), (750 + 500 + 750) / 3);
}

TEST(Spread, PodsWithoutRequestsCountToo) {
  const auto empty = make_pod("p");
  EXPECT_LT(Scene(make_node("a"), std::vector<model::Pod>(20, empty)).score("spread", empty),
            Scene(make_node("a")).score("spread", empty));
}

TEST(Scores, HostileUseOfANodeDoesNotOverflow) {
  const std::vector<model::Pod> flood(20, make_pod("r", {{"cpu", INT64_MAX}, {"memory", INT64_MAX}}));
  const auto pack = with_spec(make_pod("p"), [](auto& spec) { spec.placement = model::Placement::kPack; });
  EXPECT_EQ(Scene(make_node("a"), flood).score("pack", pack), 1000);
  EXPECT_EQ(Scene(make_node("a"), flood).score("spread", make_pod("q")), 0);
}

TEST(PreferredNodeAffinity, TheMatchedShareOfThePodsOwnWeights) {
  const auto pod = with_spec(make_pod("p"), [](auto& spec) {
    spec.affinity.preferred = {{30, {{{"zone", NodeSelectorOperator::kIn, {"x"}}}, {}}},
                               {10, {{{"gpu", NodeSelectorOperator::kExists, {}}}, {}}}};
  });
  EXPECT_EQ(Scene(labelled({{"zone", "x"}, {"gpu", ""}})).score("preferred-node-affinity", pod), 1000);
  EXPECT_EQ(Scene(labelled({{"zone", "x"}})).score("preferred-node-affinity", pod), 750);
  EXPECT_EQ(Scene(labelled({{"gpu", ""}})).score("preferred-node-affinity", pod), 250);
  EXPECT_EQ(Scene(labelled({})).score("preferred-node-affinity", make_pod("q")), 0);
}

TEST(ImageLocality, TheBytesThatNeedNotBePulled) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  const auto points = [](std::vector<std::pair<std::string, int64_t>> held, std::vector<std::string> images) {
    model::Node node = make_node("a");
    node.images = std::move(held);
    return Scene(node).score("image-locality", with_spec(make_pod("p"), [&](auto& spec) { spec.images = images; }));
  };
  EXPECT_EQ(points({{"a:1", 1000 * kMiB}}, {"a:1"}), 200);
  EXPECT_EQ(points({{"a:1", 9000 * kMiB}}, {"a:1"}), 200);
  EXPECT_EQ(points({{"a:1", 23 * kMiB}}, {"a:1"}), 0) << "too small to matter";
  EXPECT_EQ(points({{"a:1", 523 * kMiB}}, {"a:1"}), 200 * 500 / 977);
  EXPECT_EQ(points({{"a:1", 1000 * kMiB}}, {"a:1", "b:1"}), 200 * 977 / 1977);
  EXPECT_EQ(points({{"a:1", 600 * kMiB}, {"b:1", 600 * kMiB}}, {"a:1", "b:1"}), 200 * 1177 / 1977);
  EXPECT_EQ(points({{"a:1", 600 * kMiB}}, {"a:1", "a:1"}), 200 * 1177 / 1977) << "each container counts";
  EXPECT_EQ(points({{"a:1", 1000 * kMiB}}, {"a:2"}), 0);
  EXPECT_EQ(points({}, {"a:1"}), 0);
  EXPECT_EQ(points({{"a:1", 1000 * kMiB}}, {}), 0);
}

TEST(ImageLocality, HostileSizesDoNotOverflow) {
  model::Node node = make_node("a");
  node.images = {{"a:1", INT64_MAX}, {"b:1", INT64_MAX}, {"c:1", INT64_MIN}};
  const auto pod = with_spec(make_pod("p"), [&](auto& spec) { spec.images = {"a:1", "b:1", "c:1"}; });
  EXPECT_EQ(Scene(node).score("image-locality", pod), 200);
}

TEST(ImageLocality, IsNoReasonToBreakIntoAnEmptyGpuNode) {
  model::Node held = make_node("a", {{kGpu, 8}});
  held.images = {{"a:1", INT64_MAX}};
  for (int used = 1; used < 8; ++used)
    for (int asked = 1; used + asked <= 8; ++asked) {
      const auto pod = with_spec(make_pod("p", {{kGpu, asked}}), [](auto& spec) { spec.images = {"a:1"}; });
      Scene empty(held), in_use(make_node("b", {{kGpu, 8}}), {make_pod("r", {{kGpu, used}})});
      EXPECT_LT(empty.score("pack", pod) + empty.score("image-locality", pod), in_use.score("pack", pod))
          << used << " " << asked;
    }
}

TEST(PreferNoSchedule, FallsWithEachUntoleratedTaint) {
  model::Node node = make_node("a");
  EXPECT_EQ(Scene(node).score("prefer-no-schedule", make_pod("p")), 0);
  node.taints = {{"x", "", TaintEffect::kPreferNoSchedule}, {"y", "", TaintEffect::kNoSchedule}};
  EXPECT_EQ(Scene(node).score("prefer-no-schedule", make_pod("p")), -500);
  node.taints.push_back({"z", "", TaintEffect::kPreferNoSchedule});
  EXPECT_EQ(Scene(node).score("prefer-no-schedule", make_pod("p")), -667);
  EXPECT_EQ(Scene(node).score("prefer-no-schedule", tolerating({"x", "", TolerationOperator::kExists, true, {}})),
            -500);
}

model::Node with_model(const std::string& product) {
  model::Node node = make_node("a", {{kGpu, 4}});
  node.labels.set(std::string(kGpuProductLabel), product);
  return node;
}

const NodeCatalog kPrices{.pools = {}, .gpu_prices = {{"H100", 4'000'000}, {"L4", 1'000'000}, {"T4-SHARED", 0}}};

TEST(Cost, ThePriceAsAShareOfTheDearest) {
  const auto points = [](const std::string& product, const model::Pod& pod) {
    return Scene(with_model(product), {}, kPrices).score("cost", pod);
  };
  const auto gpu = make_pod("p", {{kGpu, 2}});
  EXPECT_EQ(points("H100", gpu), -1000);
  EXPECT_EQ(points("L4", gpu), -250);
  EXPECT_EQ(points("B200", gpu), -1000) << "not listed";
  EXPECT_EQ(points("L4-SHARED", gpu), -250) << "a listed model with NVIDIA's suffix";
  EXPECT_EQ(points("L4-MIG-1g.6gb", gpu), -250);
  EXPECT_EQ(points("T4-SHARED", gpu), 0) << "listed as it is";
  EXPECT_EQ(Scene(make_node("a", {{kGpu, 4}}), {}, kPrices).score("cost", gpu), -1000) << "no label";
  EXPECT_EQ(points("H100", make_pod("q", {{"cpu", 1000}})), 0) << "no GPUs, no preference";
  EXPECT_EQ(Scene(with_model("H100")).score("cost", gpu), 0) << "no prices";
}

TEST(Cost, APartOfADeviceCostsThatPart) {
  model::Node node = with_model("H100");
  node.gpus = {model::GpuSharing::kDevices, kGpu, int64_t{80} << 30, 1};
  const auto asking = [](const model::GpuShare& share) {
    return with_spec(make_pod("p"), [&](auto& spec) { spec.gpu_share = share; });
  };
  EXPECT_EQ(Scene(node, {}, kPrices).score("cost", asking({500'000, 0, ""})), -500);
  EXPECT_EQ(Scene(node, {}, kPrices).score("cost", asking({0, int64_t{20} << 30, ""})), -250);
  node.gpus = {model::GpuSharing::kReplicas, kGpu, int64_t{80} << 30, 4};
  EXPECT_EQ(Scene(node, {}, kPrices).score("cost", asking({300'000, 0, ""})), -500) << "two of four replicas";
  EXPECT_EQ(Scene(node, {}, kPrices).score("cost", make_pod("q", {{kGpu, 1}})), -250) << "a replica each";
}

TEST(Power, IdleNodesComeLastAndTheFullestFirst) {
  model::Pod daemon = make_pod("d", {{"cpu", 60'000}});
  daemon.daemon = true;
  const auto pod = make_pod("p");
  EXPECT_EQ(Scene(make_node("a")).score("power", pod), -1000);
  EXPECT_EQ(Scene(make_node("a"), {daemon}).score("power", pod), -1000);
  EXPECT_EQ(Scene(make_node("a"), {make_pod("r", {{"cpu", 32'000}})}).score("power", pod), -250);
  EXPECT_EQ(Scene(make_node("a", {{kGpu, 8}}), {make_pod("r", {{"cpu", 32'000}, {kGpu, 6}})}).score("power", pod),
            -125);
  EXPECT_EQ(Scene(make_node("a"), {make_pod("r", {{"cpu", INT64_MAX}})}).score("power", pod), 0);
  EXPECT_GT(Scene(make_node("a"), {make_pod("r")}).score("power", pod), -1000) << "in use, if by nothing to speak of";
}

TEST(Power, APodThatBecomesADaemonFreesItsNode) {
  Scene scene(make_node("a"), {make_pod("r")});
  const PodSlot slot = scene.state.find_pod("uid-r0");
  const uint32_t before = scene.state.node(scene.node).generation;
  model::Pod adopted = scene.state.pod(slot).pod;
  adopted.daemon = true;
  scene.state.replace_pod(slot, std::move(adopted));
  EXPECT_EQ(scene.score("power", make_pod("p")), -1000);
  EXPECT_GT(scene.state.node(scene.node).generation, before) << "or scores that are kept would be old";
  scene.state.unassign(slot, PodPhase::kNotQueued);
  EXPECT_TRUE(scene.state.view(scene.node).idle());
}

TEST(FragmentationAware, HowFarTheExpectedUseOfWhatIsLeftFalls) {
  const std::vector<model::Pod> ones_and_eights = {make_pod("one", {{kGpu, 1}}), make_pod("eight", {{kGpu, 8}})};
  Scene whole(make_node("a", {{kGpu, 8}})), half(make_node("a", {{kGpu, 8}}), {make_pod("r", {{kGpu, 4}})});
  EXPECT_EQ(whole.score("fragmentation-aware", ones_and_eights[0]), 0) << "nothing is known of what comes";
  whole.see(ones_and_eights);
  half.see(ones_and_eights);
  EXPECT_EQ(whole.score("fragmentation-aware", ones_and_eights[0]), -818) << "8 become 7 and 8 become 0: 4.5 of 5.5";
  EXPECT_EQ(half.score("fragmentation-aware", ones_and_eights[0]), -333) << "4 become 3, and 0 stay 0: 0.5 of 1.5";
  EXPECT_EQ(whole.score("fragmentation-aware", ones_and_eights[1]), -500) << "8 of 16";
  Scene bare(make_node("a"));
  bare.see(ones_and_eights);
  EXPECT_EQ(bare.score("fragmentation-aware", make_pod("cpu", {{"cpu", 1000}})), 0);
}

TEST(FragmentationAware, CpuAndMemoryCountAsFarAsGpusNeedThem) {
  const auto points = [](int gpus, const model::ResourceList& requests) {
    Scene scene(make_node("a", {{kGpu, gpus}}));
    scene.see({make_pod("t", {{"cpu", 8000}, {"memory", int64_t{32} << 30}, {kGpu, 1}})});
    return scene.score("fragmentation-aware", make_pod("p", requests));
  };
  EXPECT_EQ(points(8, {{"cpu", 32'000}}), -800) << "the CPU of four GPUs";
  EXPECT_EQ(points(8, {{"memory", int64_t{32} << 30}}), -500) << "the memory of one";
  EXPECT_EQ(points(2, {{"cpu", 32'000}}), 0) << "what is left does for both";
  EXPECT_EQ(points(8, {{"cpu", 8000}, {kGpu, 1}}), -500);
  EXPECT_EQ(points(8, {{"cpu", 16'000}, {kGpu, 1}}), -666) << "one GPU, and the CPU of another";
}

TEST(FragmentationAware, SharesTakeWhatHardlyAnythingFits) {
  model::Node node = make_node("a", {{kGpu, 1}});
  node.gpus = {model::GpuSharing::kDevices, kGpu, 0, 1};
  const auto share = [](const char* name, int64_t micros) {
    return with_spec(make_pod(name), [&](auto& spec) { spec.gpu_share.micros = micros; });
  };
  const auto points = [&](const std::vector<model::Pod>& running, int64_t micros) {
    Scene scene(node, running);
    scene.see({share("half", 500'000)});
    return scene.score("fragmentation-aware", share("p", micros));
  };
  EXPECT_EQ(points({}, 500'000), -333) << "two halves become one";
  EXPECT_EQ(points({}, 300'000), -333);
  EXPECT_EQ(points({share("r", 600'000)}, 300'000), 0) << "no half fits anyway";
  EXPECT_EQ(points({share("r", 200'000)}, 300'000), 0) << "one fits before and after";
  node.gpus = {model::GpuSharing::kReplicas, kGpu, 0, 4};
  node.allocatable.set(kGpu, 4);
  EXPECT_EQ(points({}, 250'000), -333) << "four replicas are two halves, three are one";
}

TEST(GpuNodeAversion, OutweighsEveryOtherScoreTogether) {
  EXPECT_EQ(Scene(make_node("a", {{kGpu, 1}})).score("gpu-node-aversion", make_pod("p")), -kMaxScore);
  EXPECT_EQ(Scene(make_node("a", {{kGpu, 0}})).score("gpu-node-aversion", make_pod("p")), 0);
  EXPECT_EQ(Scene(make_node("a", {{kGpu, 1}})).score("gpu-node-aversion", make_pod("p", {{kGpu, 1}})), 0);
  int64_t others = 0;
  for (const auto& score : default_policies().scores)
    if (score.policy->name != "gpu-node-aversion") others += score.weight;
  EXPECT_LT(others, policy_named("gpu-node-aversion").default_weight);
}

TEST(Registry, FiltersRunInOrderAndTheFirstThatObjectsSpeaksAlone) {
  model::Node node = tainted({"gpu", "", TaintEffect::kNoSchedule});
  node.unschedulable = true;
  Scene scene(node);
  Reasons reasons;
  EXPECT_FALSE(run_filters(default_policies(), scene.class_of(make_pod("p", {{kGpu, 1}})), scene.state.view(scene.node),
                           reasons));
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0].info->text, "node(s) were unschedulable");
}

TEST(Topology, AWishThatMakesNoSenseIsToldBeforeAnyNodeIsLookedAt) {
  Scene scene(make_node("n"));
  model::Pod bad = make_pod("bad");
  const model::Pod good = make_pod("good");
  auto spec = std::make_shared<model::SchedulingSpec>(*bad.spec);
  spec->peers.problem = "annotation berth.dev/topology: why.";
  bad.spec = spec;
  const PolicyInfo& topology = policy_named("topology");
  EXPECT_EQ(topology.pre_filter(scene.class_of(bad), scene.state), "annotation berth.dev/topology: why.");
  EXPECT_EQ(topology.pre_filter(scene.class_of(good), scene.state), "");
}

}  // namespace
}  // namespace berth::policy
