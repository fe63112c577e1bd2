#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace berth {

void check_failed(std::string_view what, const std::source_location& where) {
  std::fprintf(stderr, "berth: internal check failed at %s:%u in %s: %.*s\n", where.file_name(), where.line(),
               where.function_name(), static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace berth
