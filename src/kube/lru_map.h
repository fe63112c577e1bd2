// LruMap: a map of bounded size that forgets the key which was used longest ago.
//
// One thread or under the owner's lock. Every operation costs O(1).
#pragma once

#include <list>
#include <string>
#include <unordered_map>
#include <utility>

namespace berth::kube {

template <typename Value>
class LruMap {
 public:
  explicit LruMap(size_t capacity) : capacity_(capacity) {}

  // The value of `key`, now the newest; null if absent. Valid until the next insert() or erase().
  Value* find(const std::string& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }
  // As find(), but the key does not become newer.
  Value* peek(const std::string& key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &found->second->second;
  }
  // `key` must be absent.
  Value& insert(const std::string& key, Value value) {
    if (entries_.size() >= capacity_ && !entries_.empty()) erase(std::string(entries_.back().first));
    entries_.emplace_front(key, std::move(value));
    index_[key] = entries_.begin();
    return entries_.front().second;
  }
  void erase(const std::string& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return;
    entries_.erase(found->second);
    index_.erase(found);
  }
  // Newest first: pairs of key and value.
  std::list<std::pair<std::string, Value>>& entries() { return entries_; }

 private:
  size_t capacity_;
  std::list<std::pair<std::string, Value>> entries_;
  std::unordered_map<std::string, typename std::list<std::pair<std::string, Value>>::iterator> index_;
};

}  // namespace berth::kube
