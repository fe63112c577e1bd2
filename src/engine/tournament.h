// Tournament: the best of an array's entries, kept while single ones change.
//
// A tree of matches over the indexes 0 to size() - 1: one changed entry costs O(log n), the winner O(1). `better(a, b)`
// says which of two indexes wins; it is given every index below size(), which is a power of two.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace berth::engine {

class Tournament {
 public:
  // All matches are to be played again: rebuild().
  void resize(size_t entries) { winners_.assign(std::bit_ceil(std::max<size_t>(entries, 2)), 0); }
  void clear() { winners_ = {}; }
  size_t size() const { return winners_.size(); }

  template <typename Better>
  void rebuild(Better better) {
    const auto half = static_cast<uint32_t>(winners_.size() / 2);
    for (uint32_t i = half; i-- > 0;) winners_[half + i] = better(2 * i, 2 * i + 1);
    for (uint32_t i = half; i-- > 1;) winners_[i] = better(winners_[2 * i], winners_[2 * i + 1]);
  }
  template <typename Better>
  void update(uint32_t entry, Better better) {
    auto i = (static_cast<uint32_t>(winners_.size()) + entry) / 2;
    winners_[i] = better(entry & ~1U, entry | 1U);
    for (i /= 2; i >= 1; i /= 2) winners_[i] = better(winners_[2 * i], winners_[2 * i + 1]);
  }
  uint32_t winner() const { return winners_[1]; }
  size_t memory_bytes() const { return winners_.capacity() * sizeof(uint32_t); }

 private:
  std::vector<uint32_t> winners_;  // winners_[i]: winning entry below inner node i; the root is 1
};

}  // namespace berth::engine
