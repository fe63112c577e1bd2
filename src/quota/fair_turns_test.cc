#include "quota/fair_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>

#include "base/rng.h"

namespace berth::quota {
namespace {

using ::testing::ElementsAre;

constexpr const char *kGpu = "nvidia.com/gpu", *kCpu = "cpu";

model::ClusterQueue queue(const std::string& name, const std::string& cohort, int64_t gpus, int64_t cpus = 0) {
  model::ClusterQueue out;
  out.name = name;
  out.cohort = cohort;
  out.groups = {{{kGpu, kCpu}, {{"a", {{kGpu, {gpus, {}, {}}}, {kCpu, {cpus, {}, {}}}}}}}};
  return out;
}

OrderKey key(int64_t since, int32_t less_important = 0) {
  return {true, less_important, Time{since}, "uid-" + std::to_string(since), WorkloadId{static_cast<uint32_t>(since)}};
}

TEST(FairTurns, TheLeastShareIsFirstAndCountsAnewAfterEachTurn) {
  QuotaTree tree({{"q1", queue("q1", "all", 2)}, {"q2", queue("q2", "all", 2)}}, {});
  const FlavorResource fr = tree.find("a", kGpu);
  const QuotaNode q1 = tree.queue("q1"), q2 = tree.queue("q2");
  const Amounts one = {{fr, 1}}, three = {{fr, 3}};
  const OrderKey k0 = key(0), k1 = key(1), k2 = key(2), k3 = key(3);
  // Within their quota the older one is first. With three q1 would borrow; q2 does from its third on.
  FairTurns turns(tree, {{q1, &one, &k0}, {q1, &three, &k1}, {q2, &one, &k2}, {q2, &one, &k3}});
  std::vector<size_t> order;
  while (!turns.empty()) {
    order.push_back(turns.next());
    tree.add_usage(order.back() < 2 ? q1 : q2, order.back() == 1 ? three : one);
  }
  EXPECT_THAT(order, ElementsAre(0, 2, 3, 1));
}

TEST(FairTurns, WhatIsPromisedComesBeforeShares) {
  QuotaTree tree({{"q1", queue("q1", "all", 2)}, {"q2", queue("q2", "all", 2)}, {"alone", queue("alone", "", 2)}}, {});
  const Amounts four = {{tree.find("a", kGpu), 4}}, one = {{tree.find("a", kGpu), 1}};
  const OrderKey k0 = key(0), k1 = key(1), k2 = key(2), k3 = key(3);
  FairTurns turns(tree, {{tree.queue("q2"), &one, &k1},
                         {tree.queue("alone"), &one, &k3},
                         {tree.queue("q1"), &four, &k2, 1},
                         {tree.queue("q1"), &four, &k0, 0}});
  EXPECT_EQ(turns.next(), 3u);
  EXPECT_EQ(turns.next(), 2u);
  EXPECT_EQ(turns.next(), 0u);
  EXPECT_EQ(turns.next(), 1u);
  EXPECT_TRUE(turns.empty());
}

// The tournament as it is described, from the beginning at each turn.
struct Tournament {
  QuotaTree& tree;
  const std::vector<FairTurns::Claim>& claims;
  std::vector<bool> done;

  std::optional<size_t> winner(QuotaNode node) {
    if (tree.is_queue(node)) {
      for (size_t i = 0; i < claims.size(); ++i)
        if (!done[i] && claims[i].queue == node) return i;
      return {};
    }
    std::optional<size_t> best;
    QuotaNode best_child;
    for (const QuotaNode child : tree.children(node)) {
      const std::optional<size_t> first = winner(child);
      if (!first || (best && !is_earlier(*first, child, *best, best_child))) continue;
      best = first;
      best_child = child;
    }
    return best;
  }
  QuotaTree::Share share(size_t claim, QuotaNode child) {
    tree.add_usage(claims[claim].queue, *claims[claim].usage);
    bool borrows = false;
    for (const auto& [fr, amount] : *claims[claim].usage) borrows |= tree.borrows_with(child, fr, 0);
    const QuotaTree::Share out{borrows, tree.share(child)};
    tree.remove_usage(claims[claim].queue, *claims[claim].usage);
    return out;
  }
  bool is_earlier(size_t a, QuotaNode child_a, size_t b, QuotaNode child_b) {
    const auto share_a = share(a, child_a), share_b = share(b, child_b);
    if (share_a < share_b || share_b < share_a) return share_a < share_b;
    return comes_earlier(*claims[a].key, *claims[b].key);
  }
  size_t next() {
    const auto first = static_cast<size_t>(std::ranges::find(done, false) - done.begin());
    const size_t out = *winner(tree.root(claims[first].queue));
    done[out] = true;
    return out;
  }
};

TEST(FairTurnsProperty, TheyAreThoseOfTheTournament) {
  uint64_t passed = 0;  // turns out of the order of age
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    const auto upto = [&](uint64_t most) { return static_cast<int64_t>(rng.below(most + 1)); };
    QuotaTree::Cohorts cohorts;
    const int64_t groups = 1 + upto(4);
    for (int64_t i = 0; i < groups; ++i) {
      model::Cohort& cohort = cohorts["c" + std::to_string(i)];
      cohort.name = "c" + std::to_string(i);
      if (i > 0 && rng.below(4) > 0) cohort.parent = "c" + std::to_string(upto(static_cast<uint64_t>(i) - 1));
      cohort.fair_weight = model::kFairWeightUnit * upto(3);
    }
    QuotaTree::Queues queues;
    const int64_t count = 1 + upto(6);
    for (int64_t i = 0; i < count; ++i) {
      const std::string cohort = rng.below(6) == 0 ? "" : "c" + std::to_string(upto(static_cast<uint64_t>(groups) - 1));
      model::ClusterQueue each = queue("q" + std::to_string(i), cohort, upto(4), upto(8));
      each.fair_weight = model::kFairWeightUnit * (1 + upto(2));
      queues[each.name] = each;
    }
    QuotaTree tree(queues, cohorts);
    const FlavorResource gpu = tree.find("a", kGpu), cpu = tree.find("a", kCpu);
    const auto any = [&] { return tree.queue("q" + std::to_string(upto(static_cast<uint64_t>(count) - 1))); };
    for (int64_t i = upto(5); i > 0; --i) tree.add_usage(any(), {{gpu, upto(3)}, {cpu, upto(3)}});
    std::deque<Amounts> usages;
    std::deque<OrderKey> keys;
    std::vector<FairTurns::Claim> claims;
    for (int64_t i = 1 + upto(9); i > 0; --i) {
      usages.push_back({{gpu, upto(3)}, {cpu, upto(3)}});
      keys.push_back(key(static_cast<int64_t>(keys.size()), static_cast<int32_t>(upto(2))));
      claims.push_back({any(), &usages.back(), &keys.back()});
    }
    Tournament expected{tree, claims, std::vector<bool>(claims.size(), false)};
    FairTurns turns(tree, claims);
    for (size_t turn = 0; turn < claims.size(); ++turn) {
      const size_t claim = turns.next();
      ASSERT_EQ(claim, expected.next()) << "seed " << seed << ", turn " << turn;
      passed += claim != turn;
      if (rng.below(2) == 0) tree.add_usage(claims[claim].queue, *claims[claim].usage);
    }
    EXPECT_TRUE(turns.empty());
  }
  EXPECT_GT(passed, 400u);
}

}  // namespace
}  // namespace berth::quota
