// Volumes: claims, volumes and storage become the engine's plain values, and a pod's volumes the claims that it uses.
//
// Beta annotations, access modes by name and defaults are resolved here. Pure functions; thread-safe.
#pragma once

#include <vector>

#include "api/pod.h"
#include "api/volumes.h"
#include "model/pod.h"
#include "model/volumes.h"

namespace berth::bridge {

model::VolumeClaim to_model(const api::PersistentVolumeClaim& claim);
model::Volume to_model(const api::PersistentVolume& volume);
model::StorageClass to_model(const api::StorageClass& storage_class);
model::AttachLimits to_model(const api::CsiNode& node);
model::StorageDriver to_model(const api::CsiDriver& driver);
model::StorageCapacity to_model(const api::CsiStorageCapacity& capacity);

// The claims of the pod's volumes, each once. Ephemeral ones are called "<pod>-<volume>".
std::vector<model::ClaimUse> claims_of(const api::Pod& pod);

}  // namespace berth::bridge
