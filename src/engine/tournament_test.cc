// After any changes the winner is the one that a look at all entries finds.
#include "engine/tournament.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace berth::engine {
namespace {

TEST(Tournament, WinnerIsThatOfALinearLook) {
  Rng rng(7);
  for (const size_t size : {1, 2, 3, 8, 13}) {
    Tournament tournament;
    tournament.resize(size);
    std::vector<uint64_t> values(tournament.size());
    ASSERT_GE(values.size(), size);
    for (uint64_t& value : values) value = rng.below(5);
    const auto better = [&](uint32_t a, uint32_t b) { return values[b] > values[a] ? b : a; };
    const auto linear = [&] {
      uint32_t best = 0;
      for (uint32_t i = 1; i < values.size(); ++i) best = better(best, i);
      return best;
    };
    tournament.rebuild(better);
    EXPECT_EQ(tournament.winner(), linear());
    for (int i = 0; i < 100; ++i) {
      const auto changed = static_cast<uint32_t>(rng.below(values.size()));
      values[changed] = rng.below(5);
      tournament.update(changed, better);
      ASSERT_EQ(tournament.winner(), linear()) << size;
    }
  }
}

}  // namespace
}  // namespace berth::engine
