#include "apps/scheduler/turn_plan.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/rng.h"

namespace berth::apps {
namespace {

// An owner thread on a machine of which it is known what everything costs.
struct Machine {
  TurnPlan plan{{}};
  Time now;
  Duration per_update, per_unit;
  std::deque<size_t> inbox;  // messages, by their number of updates
  int64_t work_waiting = 0;
  struct Turn {
    size_t updates = 0, messages = 0;
    int64_t work = 0;
    Duration took;
  };

  Turn turn() {
    const Time began = now;
    plan.begin(now);
    while (!inbox.empty() && plan.take(inbox.front(), now)) {
      now = now + per_update * static_cast<int64_t>(inbox.front());
      inbox.pop_front();
    }
    const int64_t work = std::min(work_waiting, plan.work());
    work_waiting -= work;
    now = now + per_unit * work;
    plan.cycle_took(per_unit * work, work);
    return {plan.updates(), plan.messages(), work, now - began};
  }
};

TEST(TurnPlan, UnderAFloodATurnIsBoundedInUpdatesAndInWork) {
  Rng rng(1);
  Machine machine;
  machine.per_update = Duration{500};
  machine.per_unit = Duration{50};
  size_t sent = 0, taken = 0;
  for (int i = 0; i < 500; ++i) {
    for (int n = 0; n < 100; ++n) {
      machine.inbox.push_back(static_cast<size_t>(rng.between(1, 200)));
      sent += machine.inbox.back();
    }
    machine.work_waiting += 1'000'000;
    const Machine::Turn turn = machine.turn();
    taken += turn.updates;
    ASSERT_LE(turn.updates, 2000u);
    ASSERT_LE(turn.work, 200'000);
    ASSERT_GT(turn.work, 0);
  }
  while (!machine.inbox.empty()) taken += machine.turn().updates;
  EXPECT_EQ(taken, sent);
}

// Whatever the machine's speed, a turn ends in time, once a cycle has been seen.
TEST(TurnPlan, UnitsFollowTheSpeedOfTheMachine) {
  for (const int64_t unit_nanos : {20, 200, 2'000, 20'000, 60'000}) {
    Machine machine;
    machine.per_update = Duration{unit_nanos * 20};
    machine.per_unit = Duration{unit_nanos};
    machine.inbox.assign(1'000'000, 10);
    machine.work_waiting = INT64_MAX / 2;
    for (int i = 0; i < 50; ++i) {
      const Machine::Turn turn = machine.turn();
      if (i < 10) continue;
      ASSERT_LE(turn.took.nanos, Duration::millis(250).nanos) << unit_nanos << " ns a unit, turn " << i;
    }
  }
}

TEST(TurnPlan, AMachineThatRecoversGetsItsUnitsBack) {
  Machine machine;
  machine.work_waiting = INT64_MAX / 2;
  machine.per_unit = Duration{10'000};
  for (int i = 0; i < 20; ++i) machine.turn();
  EXPECT_LT(machine.plan.work(), 10'000);
  machine.per_unit = Duration{100};
  for (int i = 0; i < 30; ++i) machine.turn();
  EXPECT_EQ(machine.plan.work(), 200'000);
}

TEST(TurnPlan, AMessageThatIsLongerThanATurnIsTakenByItself) {
  Machine machine;
  machine.inbox = {5, 140'000, 5};
  EXPECT_EQ(machine.turn().updates, 5u);
  EXPECT_EQ(machine.turn().updates, 140'000u);
  EXPECT_EQ(machine.turn().updates, 5u);
}

TEST(TurnPlan, FewUnitsSayNothingOfTheirCost) {
  TurnPlan plan{{}};
  const int64_t before = plan.work();
  plan.cycle_took(Duration::seconds(1), 10);
  plan.cycle_took(Duration::seconds(1), 0);
  EXPECT_EQ(plan.work(), before);
}

}  // namespace
}  // namespace berth::apps
