// What must hold after every step, checked from scratch: used by every test, and cheaply enough (O(pods + nodes)) by
// the daemon now and then.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace berth::engine {

// One sentence for each invariant that does not hold; empty when all do. Over-use that foreign binds or shrinking nodes
// brought about is not an error of the engine and is not reported.
std::vector<std::string> broken_invariants(const Engine& engine);

}  // namespace berth::engine
