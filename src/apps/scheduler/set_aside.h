// SetAside: the objects that cannot be understood at present, for /readyz?verbose.
//
// A node among them takes no new work: to the engine it is not there, or, where only what it tells of its devices
// cannot be, it is there and every verdict says so. Thread-safe. Invariant: an object is listed from the moment it is
// found malformed until it is read well, deleted, or missing from a list.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace berth::apps {

class SetAside {
 public:
  // `name`: "namespace/name", or "name" where the kind has no namespaces.
  void add(std::string_view kind, const std::string& name, std::string why);
  // It was read well, or is gone. Costs nothing while nothing is set aside.
  void remove(std::string_view kind, std::string_view namespace_name, std::string_view name);
  // A list of this kind begins: what it holds that is malformed is added again.
  void clear(std::string_view kind);

  // "Node bad: status.capacity.cpu: 'many' is not a quantity", by kind and name.
  std::vector<std::string> lines() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> why_;  // by "kind name"
  std::atomic<size_t> count_{0};
};

}  // namespace berth::apps
