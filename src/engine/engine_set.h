// SetTurn: how far a cycle is with the pods of one priority, where waiting pods are placed as a set.
//
// Of each priority first those take ordinary turns that are due, then the others are looked at as a set, once, and who
// is left takes an ordinary turn (engine/engine_set.cc).
#pragma once

#include <optional>

#include "engine/engine.h"

namespace berth::engine {

struct Engine::SetTurn {
  std::optional<int32_t> priority = {};  // none yet
  Time due_until;                        // pods created then or earlier are due
  bool searched = false;
};

}  // namespace berth::engine
