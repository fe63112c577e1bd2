// ResourceList: amounts by resource name, sorted, in canonical units (see model/quantity.h).
//
// The shape that crosses layers. Inside the engine names become ResourceIds and lists become dense vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::model {

class ResourceList {
 public:
  using Entry = std::pair<std::string, int64_t>;

  ResourceList() = default;
  ResourceList(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) set(entry.first, entry.second);
  }

  // Amount of `name`; 0 when absent.
  int64_t get(std::string_view name) const {
    const auto at = lower_bound(name);
    return at != entries_.end() && at->first == name ? at->second : 0;
  }
  bool contains(std::string_view name) const {
    const auto at = lower_bound(name);
    return at != entries_.end() && at->first == name;
  }
  void set(std::string_view name, int64_t amount) { slot(name) = amount; }
  // Adds `amount`; saturates at INT64_MAX, which no node can hold.
  void add(std::string_view name, int64_t amount);
  void add(const ResourceList& other) {
    for (const Entry& entry : other) add(entry.first, entry.second);
  }
  // Raises each amount to that of `other` where that is larger.
  void max(const ResourceList& other) {
    for (const Entry& entry : other) {
      int64_t& mine = slot(entry.first);
      mine = std::max(mine, entry.second);
    }
  }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }

  friend bool operator==(const ResourceList&, const ResourceList&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const ResourceList& list) {
    return H::combine(std::move(state), list.entries_);
  }

 private:
  std::vector<Entry>::const_iterator lower_bound(std::string_view name) const {
    return std::lower_bound(entries_.begin(), entries_.end(), name,
                            [](const Entry& entry, std::string_view n) { return entry.first < n; });
  }
  int64_t& slot(std::string_view name) {
    const auto at = entries_.begin() + (lower_bound(name) - entries_.begin());
    if (at != entries_.end() && at->first == name) return at->second;
    return entries_.emplace(at, std::string(name), 0)->second;
  }
  std::vector<Entry> entries_;
};

}  // namespace berth::model
