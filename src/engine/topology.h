// Topology: the domains of nodes: for each label key that some pod asks about ("topology.kubernetes.io/zone",
// "kubernetes.io/hostname"), which nodes share a value.
//
// Keys and domains are counted by their users and forgotten with the last; a DomainId stands for a key and a value.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/ids.h"
#include "model/labels.h"

namespace berth::engine {

// A node's domain by key, sorted; keys that the node lacks are absent.
using NodeDomains = std::vector<std::pair<TopologyKeyId, DomainId>>;

// The node's domain of a key; invalid without the label.
inline DomainId domain_of(const NodeDomains& domains, TopologyKeyId key) {
  for (const auto& [k, domain] : domains)
    if (k == key) return domain;
  return DomainId{};
}

class Topology {
 public:
  struct Acquired {
    TopologyKeyId key;
    bool is_new = false;  // nodes have no domains of it yet
  };
  Acquired acquire_key(const std::string& key);
  // True when that was its last user: nodes must give back their domains of it.
  bool release_key(TopologyKeyId key);

  // The domains of a node with these labels; each one counts as used until drop().
  NodeDomains domains_for(const model::Labels& labels);
  void drop(const NodeDomains& domains);

  bool has_keys() const { return !keys_by_name_.empty(); }
  const std::string& key(TopologyKeyId id) const { return keys_[id.value].name; }
  TopologyKeyId key_of(DomainId id) const { return domains_[id.value].key; }
  const std::string& value(DomainId id) const { return domains_[id.value].value; }
  // Grows when ids of forgotten domains are handed out again.
  uint64_t reuse_version() const { return reuse_version_; }
  // Grows when a key that no node had is had by one, or the other way round.
  uint64_t presence_version() const { return presence_version_; }
  size_t domain_count(TopologyKeyId id) const { return keys_[id.value].by_value.size(); }
  size_t domain_slots() const { return domains_.size(); }  // every DomainId is below

 private:
  struct Key {
    std::string name;
    uint32_t users = 0;
    absl::flat_hash_map<std::string, DomainId> by_value;
  };
  struct Domain {
    TopologyKeyId key;
    std::string value;
    uint32_t nodes = 0;
  };
  DomainId intern(TopologyKeyId key, const std::string& value);

  std::vector<Key> keys_;
  std::vector<TopologyKeyId> free_keys_;
  absl::flat_hash_map<std::string, TopologyKeyId> keys_by_name_;
  std::vector<Domain> domains_;
  // Forgotten ids are reused in batches, since whoever remembers one must then start afresh.
  std::vector<DomainId> free_domains_, forgotten_domains_;
  uint64_t reuse_version_ = 0, presence_version_ = 0;
};

}  // namespace berth::engine
