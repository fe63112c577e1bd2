// check(): our own broken logic stops the program, in release builds too, with the state that broke it.
//
// Never for input, nor for a cluster that others have brought out of shape: those are Results and quarantine.
#pragma once

#include <string_view>

namespace berth {

// Where a call stands. std::source_location would do, but clang 14, which lints and fuzzes, has none.
struct CallSite {
  const char* file;
  const char* function;
  unsigned line;

  // As a default argument it names the caller of the function that has it.
  static constexpr CallSite here(const char* file = __builtin_FILE(), const char* function = __builtin_FUNCTION(),
                                 unsigned line = __builtin_LINE()) {
    return {file, function, line};
  }
};

[[noreturn]] void check_failed(std::string_view what, const CallSite& where);

// Aborts with `what` and the place of the call unless `condition` holds.
inline void check(bool condition, std::string_view what, const CallSite& where = CallSite::here()) {
  if (!condition) [[unlikely]]
    check_failed(what, where);
}

}  // namespace berth
