// Room that is kept for pods which have waited long: nobody waits for ever behind a stream of others.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "engine/queue_catalog.h"
#include "engine/testing.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr Duration kAfter = Duration::seconds(300);

model::Pod gpus(const std::string& name, int64_t count) { return make_pod(name, {{kGpu, count}, {"cpu", 1000}}); }

model::Pod in_queue(model::Pod pod, const std::string& queue) {
  pod.labels = std::make_shared<const model::Labels>(model::Labels{{std::string(kQueueNameLabel), queue}});
  return pod;
}

// A fleet that small pods fill: in each minute come more than leave, and each runs for at most `longest` minutes.
class Stream {
 public:
  Stream(const ReservationOptions& reservations, uint64_t seed, int nodes)
      : driver_(default_policies(), {.reservations = reservations}), rng_(seed) {
    for (int i = 0; i < nodes; ++i) driver_.add(make_node("n" + std::to_string(i), {{kGpu, 8}}));
  }
  static constexpr int kLongest = 20;

  void minute() {
    ++minute_;
    for (auto at = ends_.begin(); at != ends_.end();) {
      if (at->second > minute_) {
        ++at;
        continue;
      }
      driver_.apply(PodDeleted{at->first});
      at = ends_.erase(at);
    }
    for (int i = 0; i < 12; ++i) {
      model::Pod pod = gpus("small" + std::to_string(count_++), rng_.between(1, 3));
      pod.created = driver_.now();
      driver_.add(pod);
    }
    driver_.cycle(Duration::seconds(60), {});
    for (const auto& [uid, node] : driver_.outstanding())
      ends_[uid] = minute_ + static_cast<int>(rng_.between(1, kLongest));
    driver_.confirm();
  }
  int now() const { return minute_; }
  Driver& driver() { return driver_; }

 private:
  Driver driver_;
  Rng rng_;
  std::map<std::string, int> ends_;
  int minute_ = 0, count_ = 0;
};

// After how many minutes a pod of eight GPUs starts; nothing: not within an hour.
std::optional<int> wait_of_a_large_pod(const ReservationOptions& reservations, uint64_t seed) {
  Stream stream(reservations, seed, 3);
  stream.minute();
  model::Pod large = gpus("large", 8);
  large.created = stream.driver().now();
  stream.driver().add(large);
  const int from = stream.now();
  while (stream.now() < from + 60) {
    stream.minute();
    if (stream.driver().phase_of("large") > PodPhase::kNominated) return stream.now() - from;
  }
  return std::nullopt;
}

TEST(Reservations, NobodyStarvesBehindSmallerPods) {
  const uint64_t streams = histories_to_play(10, 100);
  uint64_t starved = 0;
  for (uint64_t seed = 1; seed <= streams; ++seed) {
    const auto without = wait_of_a_large_pod({.enabled = false}, seed);
    const auto with = wait_of_a_large_pod({.after = kAfter}, seed);
    starved += without ? 0 : 1;
    ASSERT_TRUE(with.has_value()) << "seed " << seed;
    EXPECT_LE(*with, 5 + 1 + Stream::kLongest) << "seed " << seed;
  }
  EXPECT_GT(starved, streams / 2) << "who waits behind small pods would have had a place anyway";
}

TEST(Reservations, OneNodeIsKeptForEachQueue) {
  Driver driver(default_policies(), {.reservations = {.after = kAfter}});
  for (const char* node : {"a", "b", "c"}) {
    driver.add(make_node(node, {{kGpu, 8}}));
    driver.add(bound_to(gpus(std::string("on-") + node, 1), node));
  }
  for (const char* name : {"one", "two"}) driver.add(in_queue(gpus(name, 8), "red"));
  driver.add(in_queue(gpus("three", 8), "blue"));
  driver.cycle();
  EXPECT_EQ(driver.engine().reserved_pods().size(), 0U);
  const CycleResult before = driver.cycle(kAfter - Duration::seconds(1));
  EXPECT_EQ(driver.engine().reserved_pods().size(), 0U);
  ASSERT_TRUE(before.has_wakeup);
  EXPECT_LE(before.wakeup, driver.now() + Duration::seconds(1)) << "time alone makes it due";
  driver.cycle(Duration::seconds(1));
  EXPECT_EQ(driver.engine().reserved_pods().size(), 2U);
  EXPECT_EQ(driver.phase_of("one"), PodPhase::kNominated);
  EXPECT_EQ(driver.phase_of("two"), PodPhase::kPending);
  EXPECT_EQ(driver.phase_of("three"), PodPhase::kNominated);
  EXPECT_NE(driver.node_of("one"), driver.node_of("three"));
  driver.apply(PodDeleted{"uid-one"});
  driver.cycle(Duration::seconds(60));
  EXPECT_EQ(driver.phase_of("two"), PodPhase::kNominated);
  EXPECT_EQ(driver.engine().reservations(), 3U);
}

TEST(Reservations, HigherPriorityTakesTheRoomAndTheWaitGoesOnElsewhere) {
  Driver driver(default_policies(), {.reservations = {.after = kAfter}});
  for (const char* node : {"a", "b"}) driver.add(make_node(node, {{kGpu, 8}}));
  driver.add(with_priority(bound_to(gpus("low", 1), "a"), -5));
  driver.add(with_priority(bound_to(gpus("peer", 2), "b"), 100));
  driver.add(gpus("waits", 8));
  driver.cycle();
  EXPECT_EQ(driver.node_of("waits"), "a") << "it sends the lesser one away at once";
  driver.add(with_priority(gpus("more", 8), 50));
  driver.cycle();
  EXPECT_EQ(driver.node_of("more"), "a");
  EXPECT_EQ(driver.node_of("waits"), "");
  driver.cycle(kAfter);
  EXPECT_EQ(driver.node_of("waits"), "b");
  driver.apply(PodDeleted{"uid-peer"});
  driver.cycle(Duration::seconds(1));
  EXPECT_EQ(driver.phase_of("waits"), PodPhase::kReserved);
}

// Room on a node where daemons hold what the pod needs never becomes free, nor on one that is too small.
TEST(Reservations, OnlyANodeThatCanHaveThePodIsKept) {
  Driver driver(default_policies(), {.reservations = {.after = kAfter}});
  driver.add(make_node("small", {{kGpu, 4}}));
  driver.add(make_node("watched", {{kGpu, 8}}));
  model::Pod daemon = bound_to(gpus("daemon", 1), "watched");
  daemon.daemon = true;
  driver.add(daemon);
  driver.add(gpus("waits", 8));
  driver.cycle();
  driver.cycle(kAfter);
  EXPECT_EQ(driver.engine().reserved_pods().size(), 0U);
  driver.add(make_node("busy", {{kGpu, 8}}));
  driver.add(bound_to(gpus("holder", 2), "busy"));
  driver.cycle(Duration::seconds(30));
  EXPECT_EQ(driver.node_of("waits"), "busy");
  driver.apply(NodeDeleted{"busy"});
  driver.cycle(Duration::seconds(1));
  EXPECT_EQ(driver.phase_of("waits"), PodPhase::kPending);
}

}  // namespace
}  // namespace berth::policy
