// Labels: a small sorted map from string to string, for labels, annotations and node selectors.
//
// Objects carry tens of labels and the engine compares whole sets, so entries live sorted in one vector: cheap to copy,
// compare and hash, O(log n) to look up.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::model {

class Labels {
 public:
  using Entry = std::pair<std::string, std::string>;

  Labels() = default;
  Labels(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) set(entry.first, entry.second);
  }

  // The value of `key`, or null. Valid until the next set().
  const std::string* find(std::string_view key) const {
    const auto at = lower_bound(key);
    return at != entries_.end() && at->first == key ? &at->second : nullptr;
  }
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  void erase(std::string_view key) {
    const auto at = lower_bound(key);
    if (at != entries_.end() && at->first == key) entries_.erase(at);
  }
  // Inserts or replaces.
  void set(std::string key, std::string value) {
    const auto at = entries_.begin() + (lower_bound(key) - entries_.begin());
    if (at != entries_.end() && at->first == key) at->second = std::move(value);
    else entries_.emplace(at, std::move(key), std::move(value));
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }

  friend auto operator<=>(const Labels&, const Labels&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Labels& labels) {
    return H::combine(std::move(state), labels.entries_);
  }

 private:
  std::vector<Entry>::const_iterator lower_bound(std::string_view key) const {
    return std::lower_bound(entries_.begin(), entries_.end(), key,
                            [](const Entry& entry, std::string_view k) { return entry.first < k; });
  }
  std::vector<Entry> entries_;
};

}  // namespace berth::model
