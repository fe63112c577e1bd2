#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace berth {

void check_failed(std::string_view what, const CallSite& where) {
  std::fprintf(stderr, "berth: internal check failed at %s:%u in %s: %.*s\n", where.file, where.line, where.function,
               static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace berth
