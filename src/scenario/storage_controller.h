// StorageController: the volume controller, the provisioners and the makers of claims of a simulated cluster.
//
// Claims that wait for nobody are bound as soon as a volume fits them or their class can make one; those that wait for
// their first consumer are bound when the scheduler has placed it. A volume made for a node can be reached from where
// the class's allowedTopologies let that node's volumes be, else from everywhere. Every change becomes an event.
// Owner thread only; deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/decode.h"
#include "engine/decision.h"
#include "engine/event.h"
#include "model/volumes.h"

namespace berth::scenario {

// True for the kinds of storage: claims, volumes, classes and what CSI drivers say.
bool is_storage(const api::Object& object);

class StorageController {
 public:
  // Events go to `outbox`, which must outlive this object.
  explicit StorageController(std::vector<engine::Event>& outbox) : outbox_(outbox) {}

  // A user creates or changes an object; is_storage(object).
  void put(const api::Object& object);
  // A controller makes a claim, unless there is one of its name.
  void add(const api::PersistentVolumeClaim& claim);
  // The claims of a pod's ephemeral volumes, which go with it.
  void make_claims(const api::Pod& pod);
  void forget_claims(const api::Pod& pod);
  // The scheduler has given the pod's claims a volume or, on `node`, a place for one.
  void bind(const std::string& namespace_name, const std::vector<engine::VolumeBinding>& claims,
            const model::Labels& node);
  // Binds what waits for nobody; after objects have been put.
  void reconcile();
  // All objects, as lists would bring them.
  void relist() const;

 private:
  void put(model::VolumeClaim claim);
  void put(model::Volume volume);
  void unlist_reservation(const std::string& volume);
  std::string reserved_for(const model::VolumeClaim& claim) const;
  const model::StorageClass* class_of(const model::VolumeClaim& claim) const;
  std::string default_class() const;
  const model::Volume* match(const model::VolumeClaim& claim) const;
  std::string provision(const model::VolumeClaim& claim, const model::Labels* node);
  void bind(model::VolumeClaim claim, const std::string& volume);

  std::vector<engine::Event>& outbox_;
  std::map<std::string, model::VolumeClaim> claims_;
  std::map<std::string, model::Volume> volumes_;
  std::map<std::string, std::set<std::string>> reserved_;  // by the claim that they name: volumes
  std::map<std::string, model::StorageClass> classes_;
  std::map<std::string, model::StorageObject> others_;  // by kind and key: what is only passed on
  std::vector<std::string> default_classes_;
  uint64_t made_ = 0;
};

}  // namespace berth::scenario
