#include "engine/topology.h"

#include <algorithm>

namespace berth::engine {
namespace {

constexpr size_t kReuseBatch = 1024;

}  // namespace

Topology::Acquired Topology::acquire_key(const std::string& key) {
  if (const auto at = keys_by_name_.find(key); at != keys_by_name_.end()) {
    ++keys_[at->second.value].users;
    return {at->second, false};
  }
  TopologyKeyId id{static_cast<uint32_t>(keys_.size())};
  if (!free_keys_.empty()) {
    id = free_keys_.back();
    free_keys_.pop_back();
  } else {
    keys_.emplace_back();
  }
  keys_[id.value].name = key;
  keys_[id.value].users = 1;
  keys_by_name_.emplace(key, id);
  return {id, true};
}

bool Topology::release_key(TopologyKeyId key) {
  Key& entry = keys_[key.value];
  if (--entry.users > 0) return false;
  keys_by_name_.erase(entry.name);
  entry.name.clear();
  free_keys_.push_back(key);
  return true;
}

NodeDomains Topology::domains_for(const model::Labels& labels) {
  NodeDomains out;
  for (const auto& [name, value] : labels)
    if (const auto at = keys_by_name_.find(name); at != keys_by_name_.end())
      out.emplace_back(at->second, intern(at->second, value));
  std::sort(out.begin(), out.end());
  return out;
}

DomainId Topology::intern(TopologyKeyId key, const std::string& value) {
  auto [at, added] = keys_[key.value].by_value.try_emplace(value);
  if (added) {
    if (keys_[key.value].by_value.size() == 1) ++presence_version_;
    at->second = DomainId{static_cast<uint32_t>(domains_.size())};
    if (free_domains_.empty() && forgotten_domains_.size() > kReuseBatch + domains_.size() / 2) {
      std::swap(free_domains_, forgotten_domains_);
      ++reuse_version_;
    }
    if (!free_domains_.empty()) {
      at->second = free_domains_.back();
      free_domains_.pop_back();
    } else {
      domains_.emplace_back();
    }
    domains_[at->second.value] = {key, value, 0};
  }
  ++domains_[at->second.value].nodes;
  return at->second;
}

void Topology::drop(const NodeDomains& domains) {
  for (const auto& [key, id] : domains) {
    Domain& domain = domains_[id.value];
    if (--domain.nodes > 0) continue;
    keys_[key.value].by_value.erase(domain.value);
    if (keys_[key.value].by_value.empty()) ++presence_version_;
    domain = Domain{};
    forgotten_domains_.push_back(id);
  }
}

}  // namespace berth::engine
