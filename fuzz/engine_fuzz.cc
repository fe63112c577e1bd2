// The engine on any stream of events: four bytes are a step (engine/testing_stream.h). After every step its invariants
// hold, after every cycle without bounds it has decided what brute force decides, and in the end a fresh engine agrees.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "engine/testing_compare.h"
#include "policy/registry.h"

namespace {

using namespace berth;
using namespace berth::engine;
using namespace berth::engine::testing;

constexpr size_t kStepsMax = 400;

using Actions = std::vector<BruteForce::Action>;

void compare_with_fresh(Stream& stream, const PolicySet& policies) {
  stream.calm();
  stream.cycle(Duration::seconds(400), {.max_binds = 0});
  Driver fresh(policies, {.preemption_retry = Duration{}, .nominations_max = UINT32_MAX});
  tell_facts(stream, fresh);
  fresh.cycle(stream.driver().now() - fresh.now(), {.max_binds = 0});
  check(stream.driver().state().hash() == fresh.state().hash(), "a fresh engine has the same state");
  check(actions_of(stream.cycle({}, {}).decisions) == actions_of(fresh.cycle().decisions),
        "a fresh engine decides the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const PolicySet policies = policy::default_policies();
  Stream stream(policies);
  Actions expected;
  stream.before_full_cycle = [&](Time now) { expected = brute_force(stream, now, policies).decide_all(); };
  stream.after_full_cycle = [&](const CycleResult& result) {
    check(actions_of(result.decisions) == expected, "the engine decides what brute force decides");
  };
  for (size_t i = 0; i + 4 <= size && i < 4 * kStepsMax; i += 4)
    stream.play({data[i], data[i + 1], data[i + 2], data[i + 3]});
  compare_with_fresh(stream, policies);
  return 0;
}
