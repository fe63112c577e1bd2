// What `berth` exits with, for scripts. Fixed: others build on it.
#pragma once

namespace berth::apps {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;     // anything that is neither of the following
inline constexpr int kExitUsage = 2;       // wrong flags, bad input
inline constexpr int kExitWillNotFit = 3;  // the input is valid, but something has no place

}  // namespace berth::apps
