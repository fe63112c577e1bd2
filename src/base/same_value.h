// Equality of what is shared.
#pragma once

#include <memory>

namespace berth {

// Both point to equal values, or neither to any.
template <typename T>
bool same_value(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

}  // namespace berth
