#include "quota/quota_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace berth::quota {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";

std::vector<model::ResourceGroup> gpus(model::ResourceQuota quota) { return {{{kGpu}, {{"h100", {{kGpu, quota}}}}}}; }

model::ClusterQueue queue(const std::string& name, const std::string& cohort, model::ResourceQuota quota) {
  model::ClusterQueue out;
  out.name = name;
  out.cohort = cohort;
  out.groups = gpus(quota);
  return out;
}

QuotaTree::Queues by_name(const std::vector<model::ClusterQueue>& queues) {
  QuotaTree::Queues out;
  for (const model::ClusterQueue& each : queues) out[each.name] = each;
  return out;
}

TEST(QuotaTree, AQueueAloneHasItsNominalQuota) {
  QuotaTree tree(by_name({queue("a", "", {8, {}, {}})}), {});
  const FlavorResource fr = tree.find("h100", kGpu);
  const QuotaNode a = tree.queue("a");
  EXPECT_EQ(tree.available(a, fr), 8);
  tree.add_usage(a, {{fr, 5}});
  EXPECT_EQ(tree.available(a, fr), 3);
  EXPECT_EQ(tree.potential(a, fr), 8);
  EXPECT_FALSE(tree.share(a).borrows());
}

TEST(QuotaTree, WhatIsNotLentStaysAtHome) {
  QuotaTree tree(by_name({queue("a", "pool", {8, {}, {}}), queue("b", "pool", {8, {}, 3})}), {});
  const FlavorResource fr = tree.find("h100", kGpu);
  EXPECT_EQ(tree.potential(tree.queue("a"), fr), 11);
  EXPECT_EQ(tree.potential(tree.queue("b"), fr), 16);
  tree.add_usage(tree.queue("b"), {{fr, 5}});
  EXPECT_EQ(tree.available(tree.queue("a"), fr), 11) << "the five that b keeps are not a's to take";
}

TEST(QuotaTree, ACohortsQuotaBelongsToWhoComes) {
  model::Cohort pool{"pool", "", gpus({10, {}, {}}), model::kFairWeightUnit};
  QuotaTree tree(by_name({queue("a", "pool", {0, 4, {}}), queue("b", "pool", {0, {}, {}})}), {{"pool", pool}});
  const FlavorResource fr = tree.find("h100", kGpu);
  EXPECT_EQ(tree.available(tree.queue("a"), fr), 4);
  tree.add_usage(tree.queue("b"), {{fr, 8}});
  EXPECT_EQ(tree.available(tree.queue("a"), fr), 2);
  EXPECT_EQ(tree.share(tree.queue("b")).weighted(), 800);
}

TEST(QuotaTree, CohortsThatAreTheirOwnAncestorsAreToldApart) {
  const QuotaTree::Cohorts cohorts = {{"x", {"x", "y", {}, model::kFairWeightUnit}},
                                      {"y", {"y", "x", {}, model::kFairWeightUnit}}};
  const QuotaTree tree(by_name({queue("a", "x", {1, {}, {}}), queue("b", "z", {1, {}, {}})}), cohorts);
  EXPECT_TRUE(tree.in_cycle(tree.queue("a")));
  EXPECT_TRUE(tree.in_cycle(tree.cohort("y")));
  EXPECT_FALSE(tree.in_cycle(tree.queue("b")));
}

TEST(QuotaTree, HugeQuotaDoesNotOverflow) {
  const int64_t huge = INT64_MAX;
  QuotaTree tree(by_name({queue("a", "pool", {huge, huge, {}}), queue("b", "pool", {huge, {}, {}})}), {});
  const FlavorResource fr = tree.find("h100", kGpu);
  EXPECT_EQ(tree.available(tree.queue("a"), fr), huge);
  EXPECT_EQ(tree.potential(tree.queue("a"), fr), huge);
  const QuotaNode a = tree.queue("a"), b = tree.queue("b");
  tree.add_usage(a, {{fr, huge}});
  tree.add_usage(b, {{fr, huge - 1}});
  EXPECT_EQ(tree.available(b, fr), 1);
  tree.add_usage(a, {{fr, 1}});
  EXPECT_EQ(tree.available(b, fr), 0);
  tree.remove_usage(a, {{fr, huge}});
  EXPECT_EQ(tree.usage(a, fr), 1) << "the one beyond 2^63 is still there";
  EXPECT_EQ(tree.available(b, fr), huge);
}

TEST(QuotaTree, NoWeightIsTheLargestShare) {
  const FairShare none{0, 0}, infinite{1, 0}, more{2, 0}, heavy{900, 1000}, light{900, 3000};
  EXPECT_LT(none, light);
  EXPECT_LT(light, heavy);
  EXPECT_LT(heavy, infinite);
  EXPECT_LT(infinite, more);
}

// A forest by seed, with the quota of every node kept beside it.
struct RandomTree {
  explicit RandomTree(uint64_t seed) : rng(seed) {
    const int cohort_count = static_cast<int>(rng.below(5));
    for (int i = 0; i < cohort_count; ++i) {
      const std::string name = "c" + std::to_string(i);
      const std::string parent = i > 0 && rng.below(4) > 0 ? "c" + std::to_string(rng.below(i)) : "";
      cohorts[name] = {name, parent, gpus(quota(!parent.empty())), model::kFairWeightUnit};
    }
    const int queue_count = 1 + static_cast<int>(rng.below(6));
    for (int i = 0; i < queue_count; ++i) {
      const std::string name = "q" + std::to_string(i);
      const std::string cohort =
          cohort_count > 0 && rng.below(5) > 0 ? "c" + std::to_string(rng.below(cohort_count)) : "";
      queues[name] = queue(name, cohort, quota(!cohort.empty()));
    }
  }

  model::ResourceQuota quota(bool limits) {
    model::ResourceQuota out{static_cast<int64_t>(rng.below(9)), {}, {}};
    if (limits && rng.below(3) == 0) out.borrowing_limit = static_cast<int64_t>(rng.below(6));
    if (limits && rng.below(3) == 0) out.lending_limit = static_cast<int64_t>(rng.below(out.nominal + 1));
    return out;
  }

  Rng rng;
  QuotaTree::Queues queues;
  QuotaTree::Cohorts cohorts;
};

// The rules once more, from the bottom up: what every node uses, and whether each keeps its limits.
struct Recount {
  const QuotaTree& tree;
  FlavorResource fr;
  std::map<QuotaNode, int64_t> at_queues;

  int64_t subtree(QuotaNode node) const {
    int64_t sum = tree.quota(node, fr).nominal;
    for (const QuotaNode child : tree.children(node)) sum += subtree(child) - local(child);
    return sum;
  }
  int64_t local(QuotaNode node) const {
    const auto lending = tree.quota(node, fr).lending_limit;
    return lending ? std::max<int64_t>(0, subtree(node) - *lending) : 0;
  }
  int64_t usage(QuotaNode node) const {
    if (tree.is_queue(node)) return at_queues.contains(node) ? at_queues.at(node) : 0;
    int64_t sum = 0;
    for (const QuotaNode child : tree.children(node)) sum += std::max<int64_t>(0, usage(child) - local(child));
    return sum;
  }
  // Of the node and all above it.
  bool keeps_limits(QuotaNode node) const {
    if (!tree.has_parent(node)) return usage(node) <= subtree(node);
    const auto limit = tree.quota(node, fr).borrowing_limit;
    if (limit && usage(node) > subtree(node) + *limit) return false;
    return usage(node) <= local(node) || keeps_limits(tree.parent(node));
  }
};

TEST(QuotaTreeProperty, AgreesWithARecountFromTheBottomUp) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomTree random(seed);
    QuotaTree tree(random.queues, random.cohorts);
    const FlavorResource fr = tree.find("h100", kGpu);
    Recount recount{tree, fr, {}};
    std::vector<std::pair<QuotaNode, int64_t>> held;
    for (int step = 0; step < 40; ++step) {
      const QuotaNode node = tree.queue("q" + std::to_string(random.rng.below(random.queues.size())));
      ASSERT_TRUE(recount.keeps_limits(node)) << seed;
      int64_t most = 0;
      for (Recount more = recount; most < 200; ++most) {
        more.at_queues[node] = recount.usage(node) + most + 1;
        if (!more.keeps_limits(node)) break;
      }
      ASSERT_EQ(tree.available(node, fr), most) << "seed " << seed << " step " << step << " " << tree.name(node);
      if (!held.empty() && random.rng.below(3) == 0) {
        const size_t which = random.rng.below(held.size());
        tree.remove_usage(held[which].first, {{fr, held[which].second}});
        recount.at_queues[held[which].first] -= held[which].second;
        held.erase(held.begin() + static_cast<ptrdiff_t>(which));
      } else if (most > 0) {
        const int64_t amount = 1 + static_cast<int64_t>(random.rng.below(static_cast<uint64_t>(most)));
        tree.add_usage(node, {{fr, amount}});
        recount.at_queues[node] += amount;
        held.emplace_back(node, amount);
      }
      for (uint32_t i = 0; i < tree.nodes(); ++i) ASSERT_EQ(tree.usage({i}, fr), recount.usage({i})) << seed;
    }
  }
}

}  // namespace
}  // namespace berth::quota
