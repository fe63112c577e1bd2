// Waiting pods as a set: what orders of turns allocate, against every order there is, and who may not be passed over.
#include "engine/set_search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "base/testing.h"
#include "engine/testing.h"
#include "engine/testing_policies.h"

namespace berth::engine::testing {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr Duration kBound = Duration::seconds(600);
const EngineOptions kSets{.set_packing = {.enabled = true, .head_bound = kBound}};

// The fuller node of two is better, by its GPUs in use.
int32_t used_gpus(const PodClass& pod, const NodeView& node) {
  int64_t used = 0;
  for (const ResourceAmount& request : pod.requests)
    if (node.resources().is_gpu(request.id)) used += node.used(request.id);
  return static_cast<int32_t>(used);
}
constexpr PolicyInfo kFuller = score_policy("fuller", "", 1, &used_gpus);
PolicySet filling() { return {{&kRoom}, {{&kFuller, 1}}}; }

// Pods that ask for so many GPUs, created one after the other: p0, p1, …
std::vector<model::Pod> pods_of(const std::vector<int64_t>& gpus) {
  std::vector<model::Pod> out;
  for (size_t i = 0; i < gpus.size(); ++i) {
    out.push_back(make_pod("p" + std::to_string(i), {{kGpu, gpus[i]}}));
    out.back().created = Time{static_cast<int64_t>(i)};
  }
  return out;
}

struct TwoNodes : Driver {
  explicit TwoNodes(const EngineOptions& options) : Driver(filling(), options) {
    for (const char* name : {"a", "b"}) add(make_node(name, {{kGpu, 8}}));
  }
};

// More GPUs are better; of equals, more pods that ask for none.
struct Allocated {
  int64_t gpus = 0, pods = 0, without_gpus = 0;
  std::pair<int64_t, int64_t> worth() const { return {gpus, without_gpus}; }
  friend bool operator==(const Allocated&, const Allocated&) = default;
  friend auto operator<=>(const Allocated& a, const Allocated& b) { return a.worth() <=> b.worth(); }
};

Allocated allocated(const Driver& driver, const std::vector<model::Pod>& pods) {
  Allocated out;
  for (const model::Pod& pod : pods) {
    if (driver.node_of(pod.name).empty()) continue;
    out.gpus += pod.spec->requests.get(kGpu);
    ++out.pods;
    out.without_gpus += pod.spec->requests.get(kGpu) == 0 ? 1 : 0;
  }
  return out;
}

Allocated after_a_cycle(const std::vector<model::Node>& nodes, const std::vector<model::Pod>& pods,
                        const EngineOptions& options) {
  Driver driver(filling(), options);
  for (const model::Node& node : nodes) driver.add(node);
  for (const model::Pod& pod : pods) driver.add(pod);
  EXPECT_FALSE(driver.cycle().unfinished);
  return allocated(driver, pods);
}

TEST(SetPacking, FillsNodesThatTheOrderOfTheQueueWouldStrand) {
  const auto pods = pods_of({3, 3, 5, 5});
  for (const bool enabled : {false, true}) {
    TwoNodes driver({.set_packing = {.enabled = enabled}});
    for (const model::Pod& pod : pods) driver.add(pod);
    driver.cycle();
    EXPECT_EQ(allocated(driver, pods), (enabled ? Allocated{16, 4} : Allocated{11, 3}));
  }
}

// Three pods of one GPU are worth no more than one of three that came before them.
TEST(SetPacking, ManySmallPodsDoNotPassOneThatFitsAsWell) {
  TwoNodes driver(kSets);
  const auto pods = pods_of({5, 5, 3, 3, 1, 1, 1});
  for (const model::Pod& pod : pods) driver.add(pod);
  driver.cycle();
  EXPECT_EQ(driver.node_of("p3"), "b");
  EXPECT_EQ(allocated(driver, pods), (Allocated{16, 4}));
}

TEST(SetPacking, PodsOfHigherPriorityGoFirstWhateverTheyLeave) {
  TwoNodes driver(kSets);
  auto pods = pods_of({5, 5, 3, 3});
  pods[2].priority = pods[3].priority = 1;
  for (const model::Pod& pod : pods) driver.add(pod);
  driver.cycle();
  EXPECT_EQ(driver.node_of("p2"), "a");
  EXPECT_EQ(driver.node_of("p3"), "a");
  EXPECT_EQ(allocated(driver, pods), (Allocated{11, 3}));
}

// Nodes that are full until `wait` is over; then p0 to p3 have their turns.
Allocated after_waiting(Duration wait, Driver& driver) {
  for (const char* node : {"a", "b"}) driver.add(bound_to(make_pod(std::string("holds-") + node, {{kGpu, 8}}), node));
  const auto pods = pods_of({3, 3, 5, 5});
  for (const model::Pod& pod : pods) driver.add(pod);
  driver.cycle();
  EXPECT_EQ(allocated(driver, pods), Allocated{});
  for (const char* node : {"a", "b"}) driver.apply(PodDeleted{std::string("uid-holds-") + node});
  driver.cycle(wait);
  return allocated(driver, pods);
}

TEST(SetPacking, APodThatHasWaitedForTheBoundIsNotPassedOver) {
  TwoNodes early(kSets), late(kSets);
  EXPECT_EQ(after_waiting(kBound - Duration::seconds(1), early), (Allocated{16, 4}));
  EXPECT_EQ(after_waiting(kBound, late), (Allocated{11, 3}));
  EXPECT_EQ(late.node_of("p0"), "a");
  EXPECT_EQ(late.node_of("p1"), "a");
}

TEST(SetPacking, WaitingCountsFromWhenAPodMaySchedule) {
  TwoNodes driver(kSets);
  auto pods = pods_of({3, 3, 5, 5});
  for (model::Pod& pod : pods) {
    pod.gated = true;
    driver.add(pod);
  }
  driver.cycle(kBound * 2);
  for (model::Pod& pod : pods) {
    pod.gated = false;
    driver.add(pod);
  }
  driver.cycle(kBound * 2);
  EXPECT_EQ(allocated(driver, pods), (Allocated{16, 4}));
}

// An older pod that waits for the bound, and younger ones that come all the while and would fill the node better.
TEST(SetPacking, NobodyStarvesBehindThoseThatFitBetter) {
  Driver driver(filling(), kSets);
  driver.add(make_node("a", {{kGpu, 8}}));
  driver.add(bound_to(make_pod("holder", {{kGpu, 8}}), "a"));
  model::Pod five = make_pod("five", {{kGpu, 5}});
  five.created = Time{1};
  driver.add(five);
  std::string holder = "uid-holder";
  int rounds = 0;
  for (; driver.node_of("five").empty() && rounds < 100; ++rounds) {
    model::Pod eight = make_pod("eight" + std::to_string(rounds), {{kGpu, 8}});
    eight.created = Time{2 + rounds};
    driver.add(eight);
    driver.apply(PodDeleted{holder});
    driver.cycle(Duration::seconds(60));
    holder = eight.uid;
    driver.confirm();
  }
  EXPECT_EQ(rounds, 11) << "passed over at 0s, 60s, …, and at 600s no longer";
}

TEST(SetPacking, TakesTheOrderOfTheQueueWhereWorkDoesNotSuffice) {
  EngineOptions options = kSets;
  options.set_packing.work_max = 1;
  EXPECT_EQ(after_a_cycle({make_node("a", {{kGpu, 8}}), make_node("b", {{kGpu, 8}})}, pods_of({3, 3, 5, 5}), options),
            (Allocated{11, 3}));
}

TEST(SetPacking, CyclesWithLittleWorkComeToAnEnd) {
  for (const int64_t work : {1, 2, 3, 5, 8, 13, 40}) {
    TwoNodes driver(kSets);
    const auto pods = pods_of({3, 3, 5, 5, 1, 2, 4, 6});
    for (const model::Pod& pod : pods) driver.add(pod);
    int cycles = 0;
    while (driver.cycle({}, {.work = work}).unfinished && cycles < 200) ++cycles;
    EXPECT_LT(cycles, 200) << work;
    EXPECT_GE(allocated(driver, pods), (Allocated{11, 3})) << work;
  }
}

TEST(SetPacking, BindsNoMoreThanTheCycleMay) {
  TwoNodes driver(kSets);
  const auto pods = pods_of({3, 3, 5, 5});
  for (const model::Pod& pod : pods) driver.add(pod);
  EXPECT_EQ(driver.cycle({}, {.max_binds = 1}).decisions.size(), 1U);
  while (driver.cycle({}, {.max_binds = 1}).unfinished) continue;
  EXPECT_EQ(allocated(driver, pods), (Allocated{16, 4}));
}

struct Case {
  std::vector<model::Node> nodes;
  std::vector<model::Pod> pods;
};

// A few nodes and pods of many shapes, some of which fit on one node only.
Case random_case(uint64_t seed) {
  Rng rng(seed);
  Case out;
  const int64_t nodes = rng.between(2, 3), pods = rng.between(5, 6);
  for (int64_t i = 0; i < nodes; ++i)
    out.nodes.push_back(make_node(fmt::format("n{}", i), {{kGpu, rng.between(4, 8)}, {"cpu", rng.between(4, 12)}}));
  for (int64_t i = 0; i < pods; ++i) {
    out.pods.push_back(make_pod(fmt::format("p{}", i), {{kGpu, rng.between(0, 6)}, {"cpu", rng.between(1, 6)}}));
    out.pods.back().created = Time{i};
  }
  return out;
}

Allocated best_of_all_orders(const Case& each) {
  std::vector<size_t> order(each.pods.size());
  std::iota(order.begin(), order.end(), 0U);
  Allocated best;
  do {
    std::vector<model::Pod> pods = each.pods;
    for (size_t i = 0; i < order.size(); ++i) pods[order[i]].created = Time{static_cast<int64_t>(i)};
    best = std::max(best, after_a_cycle(each.nodes, pods, {}));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(SetPacking, AllocatesAtLeastWhatTheQueueDoesAndNearlyAlwaysWhatAnyOrderCould) {
  const uint64_t cases = histories_to_play(60, 60);
  uint64_t as_good = 0, better_than_queue = 0, room_for_better = 0;
  for (uint64_t seed = 1; seed <= cases; ++seed) {
    const Case each = random_case(seed);
    const Allocated queue = after_a_cycle(each.nodes, each.pods, {});
    const Allocated set = after_a_cycle(each.nodes, each.pods, kSets);
    const Allocated best = best_of_all_orders(each);
    EXPECT_GE(set, queue) << seed;
    EXPECT_LE(set, best) << seed;
    as_good += set.worth() == best.worth() ? 1 : 0;
    room_for_better += queue < best ? 1 : 0;
    better_than_queue += queue < set ? 1 : 0;
  }
  RecordProperty("as_good_as_any_order_percent", static_cast<int>(as_good * 100 / cases));
  RecordProperty("queue_could_be_better", static_cast<int>(room_for_better));
  RecordProperty("set_is_better", static_cast<int>(better_than_queue));
  EXPECT_GE(as_good * 100, cases * 95) << better_than_queue << " of " << room_for_better << " made better";
  EXPECT_GT(room_for_better, cases / 4) << "the cases are too easy";
}

// Waiting pods as the engine has them, without the engine.
struct Scene {
  explicit Scene(const Case& each) {
    for (const model::Node& node : each.nodes) state.upsert_node(node);
    for (const model::Pod& pod : each.pods) {
      const PodSlot slot = state.add_pod(model::Pod(pod));
      state.mutable_pod(slot).phase = PodPhase::kPending;
      queue.push(slot);
    }
  }
  SetSearch search() { return {{state, policies, sets, queue, rules, nominees, kept}, 0, Time{-1}}; }

  State state;
  PolicySet policies = filling();
  FailureSets sets;
  PendingQueue queue{state};
  DisruptionRules rules;
  absl::btree_set<PodSlot, QueueOrder> nominees{QueueOrder{&state}};
  KeptGpus kept{state};
};

TEST(SetSearch, LeavesNothingBehindAndFindsTheSameAgain) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Scene scene(random_case(seed)), fresh(random_case(seed));
    const uint64_t before = scene.state.hash();
    WorkBudget work{INT64_MAX}, again{INT64_MAX};
    SetSearch search = scene.search(), second = fresh.search();
    const auto places = search.run(64, work), same = second.run(64, again);
    EXPECT_EQ(scene.state.hash(), before) << seed;
    ASSERT_TRUE(places && same);
    EXPECT_EQ(work.left, again.left) << seed;
    ASSERT_EQ(places->size(), same->size()) << seed;
    for (size_t i = 0; i < places->size(); ++i) {
      EXPECT_EQ((*places)[i].pod, (*same)[i].pod) << seed;
      EXPECT_EQ((*places)[i].node, (*same)[i].node) << seed;
    }
    EXPECT_GE(search.best(), search.of_queue()) << seed;
    EXPECT_LE(search.orders(), 64) << seed;
  }
}

TEST(SetSearch, TriesOneOrderWhereEveryPodHasAPlace) {
  Scene scene({{make_node("a", {{kGpu, 8}})}, pods_of({1, 2, 3})});
  WorkBudget work{INT64_MAX};
  SetSearch search = scene.search();
  EXPECT_EQ(search.run(64, work)->size(), 3U);
  EXPECT_EQ(search.orders(), 1);
}

TEST(SetSearch, CountsInstancesAndSharesAsPartsOfAGpu) {
  constexpr const char* kSlice = "nvidia.com/mig-3g.20gb";
  Scene scene(
      {{make_node("a", {{kGpu, 2}, {kSlice, 1}})}, {make_pod("whole", {{kGpu, 2}}), make_pod("part", {{kSlice, 1}})}});
  WorkBudget work{INT64_MAX};
  SetSearch search = scene.search();
  search.run(64, work);
  EXPECT_EQ(search.best().gpu_micros, 2'000'000 + 3'000'000 / 7);
}

}  // namespace
}  // namespace berth::engine::testing
