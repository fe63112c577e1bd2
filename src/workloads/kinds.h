// Workload kinds: how each kind of object becomes pods, as one table.
//
// One folder per kind holds its rules, as pure functions on api objects; kinds.cc lists the kinds. The simulator
// expands through this table, so that a Job or Deployment in a file means what its controller would make of it.
// Deterministic: the same object gives the same pods with the same names. Stateless, thread-safe.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "api/decode.h"
#include "api/pod.h"

namespace berth::workloads {

struct KindInfo {
  std::string_view api_version;
  std::string_view kind;
  // The pods that its controller has running at first, on an empty cluster of `nodes` (which only DaemonSets ask for).
  std::vector<api::Pod> (*expand)(const api::Object& object, std::span<const api::Node> nodes);
};

// Every kind, sorted by name.
std::span<const KindInfo> kinds();
// The kind of `object`; null for kinds that make no pods here.
const KindInfo* find_kind(const api::Object& object);

}  // namespace berth::workloads
