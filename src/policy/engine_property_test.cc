// Properties of the engine with the real policies, over random streams of events (engine/testing_stream.h).
// BERTH_LONG=1 runs twenty times as many; rapidcheck's RC_PARAMS repeats a failure.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>

#include "base/rng.h"
#include "base/testing.h"
#include "engine/testing_compare.h"
#include "policy/registry.h"

namespace berth::engine::testing {

std::ostream& operator<<(std::ostream& out, const Step& s) {
  return out << "{" << s.what % 24 << ", " << int{s.a} << ", " << int{s.b} << ", " << int{s.c} << "}";
}

}  // namespace berth::engine::testing

namespace rc {

template <>
struct Arbitrary<berth::engine::testing::Step> {
  static Gen<berth::engine::testing::Step> arbitrary() {
    using berth::engine::testing::Step;
    const auto byte = gen::resize(kNominalSize, gen::noShrink(gen::inRange(0, 256)));
    return gen::map(gen::tuple(byte, byte, byte, byte), [](const std::tuple<int, int, int, int>& t) {
      return Step{static_cast<uint8_t>(std::get<0>(t)), static_cast<uint8_t>(std::get<1>(t)),
                  static_cast<uint8_t>(std::get<2>(t)), static_cast<uint8_t>(std::get<3>(t))};
    });
  }
};

}  // namespace rc

namespace berth::engine::testing {
namespace {

using Steps = std::vector<Step>;

// Checks `property`, which takes a list of steps and another number, on `cases` random ones.
template <typename Property>
void for_all(uint64_t cases, Property property) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = static_cast<int>(histories_to_play(cases, cases * 20));
  const auto testable = [&] {
    const int length = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(1, 300));
    const auto steps = *rc::gen::resize(length, rc::gen::arbitrary<Steps>());
    property(steps, *rc::gen::arbitrary<uint32_t>());
  };
  const auto result = rc::detail::checkTestable(testable, rc::detail::TestMetadata{}, params);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  ADD_FAILURE() << text.str();
}

std::string text_of(const std::vector<BruteForce::Action>& actions) {
  std::string out;
  for (const auto& action : actions) out += action + "; ";
  return out;
}

std::string text_of(const std::vector<Decision>& decisions) {
  std::string out;
  for (const Decision& d : decisions)
    out += d.namespace_name + "/" + d.pod_name + " " + d.pod_uid +
           (d.message ? ": " + *d.message : " -> " + d.node_name) + "\n";
  return out;
}

// Sorted: in which order pods are told that they do not fit is nobody's business.
std::vector<std::string> verdicts_of(const std::vector<Decision>& decisions) {
  std::vector<std::string> out;
  for (const Decision& d : decisions)
    if (d.kind == DecisionKind::kUnschedulable) out.push_back(d.pod_uid + ": " + *d.message);
  std::sort(out.begin(), out.end());
  return out;
}

void expect_same(const std::string& actual, const std::string& expected, const std::string& what) {
  if (actual != expected) throw BrokenInvariant(what + ": got " + actual + "; expected " + expected);
}

// Every score has a weight, nodes are in two pools or in none, and so are pods in queues.
PolicySet pools_queues_and_prices() {
  policy::PolicyOptions options;
  options.weights = {{"cost", 3}, {"power", 2}};
  options.gpu_prices = {{"L4", 800'000}, {"H100", 4'000'000}};
  options.pools = {{"x", {{"zone", "x"}}, {{"power", 9}, {"spread", 0}, {"gpu-node-aversion", 0}, {"topology", 7}}},
                   {"one", {{"level", "1"}}, {{"cost", 0}, {"pack", 7}}}};
  options.queues = {{"train", {{"pack", 9}, {"inter-pod-affinity", 0}}},
                    {"ns1/train", {{"spread", 9}, {"power", 0}, {"topology", 7}}},
                    {"ns2/batch", {{"gpu-node-aversion", 0}, {"pod-topology-spread", 9}}}};
  return *policy::make_policy_set(options);
}

// With waiting pods placed as a set, and with room kept for those that have waited.
const EngineOptions kAsSets{.preemption_retry = Duration{},
                            .nominations_max = UINT32_MAX,
                            .set_packing = {.enabled = true, .head_bound = Duration::seconds(2)},
                            .reservations = {.enabled = false}};
const EngineOptions kReserving{
    .preemption_retry = Duration{},
    .nominations_max = UINT32_MAX,
    .reservations = {.after = Duration::seconds(2), .per_queue = 2, .retry = Duration::seconds(1)}};

void expect_what_brute_force_decides(const PolicySet& policies, int cases) {
  for_all(cases, [&](const Steps& steps, uint32_t) {
    Stream stream(policies);
    std::string expected;
    stream.before_full_cycle = [&](Time now) { expected = text_of(brute_force(stream, now, policies).decide_all()); };
    stream.after_full_cycle = [&](const CycleResult& result) {
      RC_ASSERT(!result.unfinished);
      expect_same(text_of(actions_of(result.decisions)), expected, "binds");
    };
    for (const Step& step : steps) stream.play(step);
    stream.full_cycle(Duration::seconds(1));
  });
}

void expect_what_a_fresh_engine_decides(const PolicySet& policies, int cases) {
  for_all(cases, [&](const Steps& steps, uint32_t) {
    Stream stream(policies);
    for (const Step& step : steps) stream.play(step);
    stream.calm();
    stream.cycle(Duration::seconds(400), {.max_binds = 0});  // back-offs end
    Driver fresh(policies, kAtOnce);
    tell_facts(stream, fresh);
    fresh.cycle(stream.driver().now() - fresh.now(), {.max_binds = 0});
    RC_ASSERT(stream.driver().state().hash() == fresh.state().hash());
    const CycleResult after_history = stream.cycle({}, {});
    const CycleResult without = fresh.cycle();
    expect_same(text_of(actions_of(after_history.decisions)), text_of(actions_of(without.decisions)), "binds");
    RC_ASSERT(stream.driver().state().hash() == fresh.state().hash());
  });
}

TEST(EngineProperty, EveryFullCycleDecidesWhatBruteForceDecides) {
  expect_what_brute_force_decides(policy::default_policies(), 600);
}

TEST(EngineProperty, EveryFullCycleDecidesWhatBruteForceDecidesWithPoolsAndPrices) {
  expect_what_brute_force_decides(pools_queues_and_prices(), 300);
}

TEST(EngineProperty, EqualsAFreshEngineOnTheSameFacts) {
  expect_what_a_fresh_engine_decides(policy::default_policies(), 600);
}

TEST(EngineProperty, EqualsAFreshEngineOnTheSameFactsWithPoolsAndPrices) {
  expect_what_a_fresh_engine_decides(pools_queues_and_prices(), 300);
}

TEST(EngineProperty, ManyBoundedCyclesBindWhatOneBinds) {
  const PolicySet policies = policy::default_policies();
  for_all(400, [&](const Steps& steps, uint32_t seed) {
    Stream whole(policies), split(policies);
    for (const Step& step : steps) whole.play(step), split.play(step);
    // A round of looks that a bounded cycle left half done ends before anything is placed.
    for (Stream* stream : {&whole, &split}) stream->cycle({}, {.max_binds = 0, .max_reports = 0});
    const std::vector<Decision> all = whole.cycle(Duration::seconds(1), {}).decisions;
    const std::string expected = text_of(actions_of(all));
    Rng rng(seed);
    std::vector<Decision> decisions;
    Duration advance = Duration::seconds(1);
    bool unfinished = true;
    for (int cycles = 0; unfinished; ++cycles) {
      RC_ASSERT(cycles < 10'000);
      const CycleLimits limits{
          .work = rng.between(1, 5), .max_binds = rng.between(1, 3), .max_reports = rng.between(1, 3)};
      const CycleResult result = split.cycle(std::exchange(advance, {}), limits);
      RC_ASSERT(result.work_used <= limits.work);
      RC_ASSERT(std::count_if(result.decisions.begin(), result.decisions.end(),
                              [](const Decision& d) { return d.kind == DecisionKind::kBind; }) <= limits.max_binds);
      RC_ASSERT(static_cast<int64_t>(verdicts_of(result.decisions).size()) <= limits.max_reports);
      decisions.insert(decisions.end(), result.decisions.begin(), result.decisions.end());
      unfinished = result.unfinished;
    }
    // A nominated pod looks for a better place once in a cycle, of which one has fewer than many.
    const State& state = whole.driver().state();
    const auto slots = state.pods();
    const bool nominated = std::any_of(slots.begin(), slots.end(),
                                       [&](PodSlot slot) { return state.pod(slot).phase == PodPhase::kNominated; });
    if (!nominated) expect_same(text_of(actions_of(decisions)), expected, "binds");
  });
}

void expect_the_same_decisions_of_the_same_calls(const EngineOptions& options) {
  const PolicySet policies = policy::default_policies();
  for_all(300, [&](const Steps& steps, uint32_t) {
    Stream one(policies, options), two(policies, options);
    for (const Step& step : steps) one.play(step);
    for (const Step& step : steps) two.play(step);
    RC_ASSERT(text_of(one.log()) == text_of(two.log()));
    RC_ASSERT(one.driver().state().hash() == two.driver().state().hash());
  });
}

TEST(EngineProperty, TheSameCallsGiveTheSameDecisions) { expect_the_same_decisions_of_the_same_calls(kAtOnce); }
TEST(EngineProperty, TheSameCallsGiveTheSameDecisionsToSets) { expect_the_same_decisions_of_the_same_calls(kAsSets); }
TEST(EngineProperty, TheSameCallsKeepTheSameNodes) { expect_the_same_decisions_of_the_same_calls(kReserving); }

TEST(EngineProperty, AskingForForecastsChangesNoDecision) {
  const PolicySet policies = policy::default_policies();
  for_all(60, [&](const Steps& steps, uint32_t) {
    Stream asked(policies, kReserving), left_alone(policies, kReserving);
    for (const Step& step : steps) {
      for (const auto& [uid, forecast] : asked.driver().engine().forecast()) {
        RC_ASSERT(forecast.p50.has_value() == forecast.p90.has_value());
        RC_ASSERT(forecast.p50.has_value() == forecast.unknown.empty());
        RC_ASSERT(!forecast.p50 || forecast.p50->nanos <= forecast.p90->nanos);
        RC_ASSERT(forecast.declaring <= forecast.blockers);
      }
      asked.play(step);
      left_alone.play(step);
    }
    RC_ASSERT(text_of(asked.log()) == text_of(left_alone.log()));
    RC_ASSERT(asked.driver().state().hash() == left_alone.driver().state().hash());
  });
}

void expect_the_same_decisions_in_any_order_of_events(const EngineOptions& options) {
  const PolicySet policies = policy::default_policies();
  for_all(300, [&](const Steps& steps, uint32_t seed) {
    Stream facts(policies);
    for (const Step& step : steps) facts.play(step);
    facts.calm();
    std::vector<Event> events;
    for (const auto& [name, node] : facts.nodes()) events.push_back(NodeUpserted{node});
    for (const auto& [uid, pod] : facts.pods()) events.push_back(PodUpserted{pod});
    for (const auto& [name, event] : facts.namespaces()) events.push_back(event);
    Driver straight(policies, options), shuffled(policies, options);
    for (const Event& event : events) straight.apply(event);
    Rng rng(seed);
    for (size_t i = events.size(); i > 1; --i) std::swap(events[i - 1], events[rng.below(i)]);
    for (const Event& event : events) shuffled.apply(event);
    const auto one = straight.cycle().decisions, two = shuffled.cycle().decisions;
    expect_same(text_of(actions_of(two)), text_of(actions_of(one)), "binds");
    RC_ASSERT(verdicts_of(two) == verdicts_of(one));
    RC_ASSERT(straight.state().hash() == shuffled.state().hash());
  });
}

TEST(EngineProperty, TheOrderOfIndependentEventsDoesNotMatter) {
  expect_the_same_decisions_in_any_order_of_events(kAtOnce);
}
TEST(EngineProperty, TheOrderOfIndependentEventsDoesNotMatterToSets) {
  expect_the_same_decisions_in_any_order_of_events(kAsSets);
}

// I8 and I4: once nothing happens any more, what every waiting pod was told last is true, and so is explain().
// Cycles at that time until one is finished: another is due at once where room may first have to be kept for others.
// Whether something was decided.
bool come_to_rest(Stream& stream, Duration step) {
  bool acts = false;
  for (int cycles = 0;; ++cycles, step = {}) {
    RC_ASSERT(cycles < 20);
    const CycleResult result = stream.cycle(step, {});
    acts |=
        std::ranges::any_of(result.decisions, [](const Decision& d) { return d.kind != DecisionKind::kUnschedulable; });
    if (!result.unfinished) return acts;
  }
}

void expect_the_truth_in_a_calm_cluster(const EngineOptions& options, int cases) {
  const PolicySet policies = policy::default_policies();
  for_all(cases, [&](const Steps& steps, uint32_t) {
    Stream stream(policies, options);
    for (const Step& step : steps) stream.play(step);
    int cycles = 0;
    for (bool acts = true; acts || cycles < 3; ++cycles) {  // in the second, nodes may be kept for who has waited
      RC_ASSERT(cycles < 20);
      acts = come_to_rest(stream, Duration::seconds(cycles == 0 ? 400 : 31));
    }
    come_to_rest(stream, Duration::seconds(31));
    BruteForce truth = brute_force(stream, stream.driver().now(), policies);
    const Engine& engine = stream.driver().engine();
    RC_ASSERT(truth.waiting().size() == engine.pending_pods() - engine.nominated_pods());
    for (const model::Pod& pod : truth.waiting()) {
      const auto& told = stream.driver().told(pod.uid);
      expect_same(told.empty() ? "nothing" : told.back(), truth.message(pod), "told to " + pod.uid);
      const Explanation why = stream.driver().explain(pod.uid);
      RC_ASSERT(why.reason == "Unschedulable");
      expect_same(why.message, truth.message(pod), "explained of " + pod.uid);
    }
    expect_same(text_of(stream.cycle(Duration::seconds(31), {}).decisions), "", "nothing is left to do");
  });
}

TEST(EngineProperty, InACalmClusterEveryWaitingPodHasBeenToldTheTruth) {
  expect_the_truth_in_a_calm_cluster(kAtOnce, 600);
}
TEST(EngineProperty, InACalmClusterWhoHasNoNodeKeptHasBeenToldTheTruth) {
  expect_the_truth_in_a_calm_cluster(kReserving, 300);
}
TEST(EngineProperty, InACalmClusterEveryWaitingPodOfASetHasBeenToldTheTruth) {
  expect_the_truth_in_a_calm_cluster(kAsSets, 300);
}

// Reports that come while work is bounded speak of one state, too: a pod that fits is never called unschedulable.
void expect_no_false_verdict(const EngineOptions& options, int64_t work_max) {
  const PolicySet policies = policy::default_policies();
  for_all(400, [&](const Steps& steps, uint32_t seed) {
    Stream stream(policies, options);
    Rng rng(seed);
    for (const Step& step : steps) {
      stream.play(step);
      const CycleResult result = stream.cycle({}, {.work = rng.between(0, work_max)});
      BruteForce truth = brute_force(stream, stream.driver().now(), policies);
      for (const Decision& d : result.decisions)
        if (d.kind == DecisionKind::kUnschedulable)
          for (const model::Pod& pod : truth.waiting())
            if (pod.uid == d.pod_uid && truth.has_hope(pod))
              throw BrokenInvariant(pod.uid + " fits, but is told: " + *d.message);
    }
  });
}

TEST(EngineProperty, NoPodThatFitsIsCalledUnschedulable) { expect_no_false_verdict(kAtOnce, 4); }
TEST(EngineProperty, NoPodOfASetThatFitsIsCalledUnschedulable) { expect_no_false_verdict(kAsSets, 60); }

// A search that the work of a cycle does not suffice for keeps nobody waiting.
TEST(EngineProperty, BoundedCyclesOfSetsEndAndKeepTheirBounds) {
  const PolicySet policies = policy::default_policies();
  for_all(300, [&](const Steps& steps, uint32_t seed) {
    Stream stream(policies, kAsSets);
    for (const Step& step : steps) stream.play(step);
    Rng rng(seed);
    for (int cycles = 0;; ++cycles) {
      RC_ASSERT(cycles < 10'000);
      const CycleLimits limits{
          .work = rng.between(1, 40), .max_binds = rng.between(1, 3), .max_reports = rng.between(1, 3)};
      const CycleResult result = stream.cycle({}, limits);
      RC_ASSERT(result.work_used <= limits.work);
      RC_ASSERT(std::count_if(result.decisions.begin(), result.decisions.end(),
                              [](const Decision& d) { return d.kind == DecisionKind::kBind; }) <= limits.max_binds);
      if (!result.unfinished) return;
    }
  });
}

}  // namespace
}  // namespace berth::engine::testing
