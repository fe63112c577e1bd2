// StorageWatch: follows claims, volumes, storage classes and what CSI drivers say, for a session.
//
// Updates come on the transport's thread. A cluster in which some kind may not be read still works for pods without
// volumes: that kind counts as listed, empty, and is asked for again and again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kube/reflector.h"
#include "model/volumes.h"

namespace berth::apps {

struct SeenStorage {
  model::StorageObject object;
  std::string resource_version;
};

struct StorageUpdates {
  model::StorageKind kind = model::StorageKind::kClaim;
  std::vector<kube::WatchUpdate<SeenStorage>> updates;
};

// "persistentvolumeclaims", … as in RBAC rules.
std::string_view plural_of(model::StorageKind kind);
// "PersistentVolumeClaim", …
std::string_view kind_of(model::StorageKind kind);

class StorageWatch {
 public:
  StorageWatch(kube::Client& client, std::function<void(StorageUpdates)> sink);

  void start();
  void stop();
  // Kinds that are refused to us (403, or 404 from servers without storage.k8s.io).
  std::vector<model::StorageKind> refused() const;
  // Of a list or watch that fails for another reason; empty when all is well.
  std::string last_error() const;
  // By plural.
  std::vector<std::pair<std::string_view, kube::ReflectorStats>> stats() const;

 private:
  std::vector<std::pair<model::StorageKind, std::unique_ptr<kube::Reflector<SeenStorage>>>> reflectors_;
};

}  // namespace berth::apps
