// How Berth wants the GPUs of a node to be cut, as it stands on the node: the annotation berth.dev/mig-desired, JSON by
// a versioned schema (docs/mig.md).
//
// It is written for whoever cuts them, and it is Berth's own memory: that a change is under way, until when it is
// waited for, and how often changes of this node have failed, outlives the process that began it. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/devices.h"
#include "model/resources.h"

namespace berth::api {
struct Node;
}

namespace berth::bridge {

inline constexpr std::string_view kMigDesiredAnnotation = "berth.dev/mig-desired";
// An agent's word that it cannot: "<id of the change> <why>".
inline constexpr std::string_view kMigFailedAnnotation = "berth.dev/mig-failed";

struct DesiredDevice {
  std::string uuid;  // empty where nobody has told it: then its place in the list is its index
  bool mig_enabled = false;
  std::vector<model::MigDeviceInstance> instances;  // without UUIDs
  friend bool operator==(const DesiredDevice&, const DesiredDevice&) = default;
};

struct MigDesired {
  enum class State : uint8_t {
    kWanted,   // to be carried out: Berth keeps GPU work off the node until it is
    kArrived,  // it is so; to be kept so
    kFailed,   // given up: the node is used as it is
  };
  std::string id;  // of the change
  State state = State::kWanted;
  Time since;        // wall: when it was begun
  Time until;        // wall. kWanted: when it is given up; else the next change begins no sooner
  int failures = 0;  // in a row, before this one
  std::string reason;
  std::string config;             // of NVIDIA's MIG manager, where that cuts
  model::ResourceList resources;  // what will be allocatable then of nvidia.com/gpu and nvidia.com/mig-*
  std::vector<DesiredDevice> devices;
};
std::string_view to_string(MigDesired::State state);
// What is to lie on each device, where an agent has told their UUIDs; else none.
std::vector<model::GpuDevice> told_devices(const MigDesired& desired);

// The annotation's value, and back. kInvalidInput, naming the field, for what is no JSON or of another version. Fields
// that this version does not know pass.
std::string mig_desired_json(const MigDesired& desired);
Result<MigDesired> read_mig_desired(std::string_view json);

// The node's annotation says that Berth has begun to have its GPUs cut, and that it is not over.
bool berth_cuts(const api::Node& node);

}  // namespace berth::bridge
