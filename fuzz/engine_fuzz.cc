// The engine on any stream of events: four bytes are a step (engine/testing_stream.h). After every step its invariants
// hold, after every cycle without bounds it has bound what brute force binds, and in the end a fresh engine agrees.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "engine/brute_force_test.h"
#include "engine/testing_stream.h"
#include "policy/registry.h"

namespace {

using namespace berth;
using namespace berth::engine;
using namespace berth::engine::testing;

constexpr size_t kStepsMax = 400;

using Binds = std::vector<BruteForce::Bind>;

Binds binds_of(const CycleResult& result) {
  Binds out;
  for (const Decision& d : result.decisions)
    if (d.kind == DecisionKind::kBind) out.push_back({d.pod_uid, d.node_name});
  return out;
}

void compare_with_fresh(Stream& stream, const PolicySet& policies) {
  stream.calm();
  stream.cycle(Duration::seconds(400), {.max_binds = 0});
  Driver fresh(policies);
  for (const auto& [name, facts] : stream.namespaces()) fresh.apply(facts);
  for (const auto& [name, node] : stream.nodes()) fresh.add(node);
  for (const auto& [uid, pod] : stream.pods()) fresh.add(pod);
  fresh.cycle(stream.driver().now() - fresh.now(), {.max_binds = 0});
  check(stream.driver().state().hash() == fresh.state().hash(), "a fresh engine has the same state");
  check(binds_of(stream.cycle({}, {})) == binds_of(fresh.cycle()), "a fresh engine decides the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const PolicySet policies = policy::default_policies();
  Stream stream(policies);
  Binds expected;
  stream.before_full_cycle = [&](Time now) {
    expected = BruteForce(stream.driver().state(), now, policies).place_all();
  };
  stream.after_full_cycle = [&](const CycleResult& result) {
    check(binds_of(result) == expected, "the engine binds what brute force binds");
  };
  for (size_t i = 0; i + 4 <= size && i < 4 * kStepsMax; i += 4)
    stream.play({data[i], data[i + 1], data[i + 2], data[i + 3]});
  compare_with_fresh(stream, policies);
  return 0;
}
