// StrongId: an index that cannot be mixed up with another kind of index.
//
//   using NodeSlot = StrongId<struct NodeSlotTag>;
//   nodes_[slot.value]
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace berth {

template <typename Tag, typename Rep = uint32_t>
struct StrongId {
  static constexpr Rep kNone = static_cast<Rep>(-1);
  Rep value = kNone;

  constexpr bool valid() const { return value != kNone; }
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const StrongId& id) {
    return H::combine(std::move(state), id.value);
  }
};

}  // namespace berth

template <typename Tag, typename Rep>
struct std::hash<berth::StrongId<Tag, Rep>> {
  size_t operator()(const berth::StrongId<Tag, Rep>& id) const noexcept { return std::hash<Rep>{}(id.value); }
};
