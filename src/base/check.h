// check(): our own broken logic stops the program, in release builds too, with the state that broke it.
//
// Never for input, nor for a cluster that others have brought out of shape: those are Results and quarantine.
#pragma once

#include <source_location>
#include <string_view>

namespace berth {

[[noreturn]] void check_failed(std::string_view what, const std::source_location& where);

// Aborts with `what` and the place of the call unless `condition` holds.
inline void check(bool condition, std::string_view what,
                  const std::source_location& where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    check_failed(what, where);
}

}  // namespace berth
