#include "apps/scheduler/storage_watch.h"

#include "api/decode.h"
#include "bridge/volumes.h"

namespace berth::apps {
namespace {

using model::StorageKind;

template <typename T>
Result<SeenStorage> decode(std::string_view json) {
  BERTH_TRY(object, api::decode_json<T>(json));
  std::string version = object.metadata.resource_version;
  return SeenStorage{bridge::to_model(object), std::move(version)};
}

struct Kind {
  StorageKind kind;
  kube::Resource resource;
  Result<SeenStorage> (*decode)(std::string_view);
};
constexpr Kind kKinds[] = {
    {StorageKind::kClaim, kube::kPersistentVolumeClaims, &decode<api::PersistentVolumeClaim>},
    {StorageKind::kVolume, kube::kPersistentVolumes, &decode<api::PersistentVolume>},
    {StorageKind::kClass, kube::kStorageClasses, &decode<api::StorageClass>},
    {StorageKind::kAttachLimits, {"storage.k8s.io", "v1", "csinodes", "CSINode"}, &decode<api::CsiNode>},
    {StorageKind::kDriver, {"storage.k8s.io", "v1", "csidrivers", "CSIDriver"}, &decode<api::CsiDriver>},
    {StorageKind::kCapacity,
     {"storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"},
     &decode<api::CsiStorageCapacity>},
};

}  // namespace

std::string_view plural_of(StorageKind kind) {
  for (const Kind& each : kKinds)
    if (each.kind == kind) return each.resource.plural;
  return "";
}

std::string_view kind_of(StorageKind kind) {
  for (const Kind& each : kKinds)
    if (each.kind == kind) return each.resource.kind;
  return "";
}

StorageWatch::StorageWatch(kube::Client& client, std::function<void(StorageUpdates)> sink) {
  for (const Kind& each : kKinds)
    reflectors_.emplace_back(each.kind, std::make_unique<kube::Reflector<SeenStorage>>(
                                            client, kube::ReflectorOptions{.resource = each.resource}, each.decode,
                                            [sink, kind = each.kind](auto updates) {
                                              sink({kind, std::move(updates)});
                                            }));
}

void StorageWatch::start() {
  for (auto& [kind, reflector] : reflectors_) reflector->start();
}

void StorageWatch::stop() {
  for (auto& [kind, reflector] : reflectors_) reflector->stop();
}

std::vector<StorageKind> StorageWatch::refused() const {
  std::vector<StorageKind> out;
  for (const auto& [kind, reflector] : reflectors_)
    if (reflector->refused()) out.push_back(kind);
  return out;
}

std::string StorageWatch::last_error() const {
  for (const auto& [kind, reflector] : reflectors_)
    if (std::string error = reflector->last_error(); !error.empty() && !reflector->refused()) return error;
  return "";
}

std::vector<std::pair<std::string_view, kube::ReflectorStats>> StorageWatch::stats() const {
  std::vector<std::pair<std::string_view, kube::ReflectorStats>> out;
  for (const auto& [kind, reflector] : reflectors_) out.emplace_back(plural_of(kind), reflector->stats());
  return out;
}

}  // namespace berth::apps
