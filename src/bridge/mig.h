// What a Kubernetes node says of MIG: whether Berth may choose the geometry of its GPUs, and of what model they are.
//
// Sources: NVIDIA GPU feature discovery's labels nvidia.com/gpu.product and .count, which with the strategy `mixed`
// counts all GPUs of the product, cut or whole, and nvidia.com/mig.strategy:
// https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery
#pragma once

#include <string_view>

#include "api/cluster.h"
#include "base/result.h"
#include "bridge/gpus.h"
#include "model/node.h"

namespace berth::bridge {

// Label or annotation of nodes: "dynamic" lets Berth choose the geometry, "static" and its absence do not.
inline constexpr std::string_view kMigPolicy = "berth.dev/mig-policy";

// NVIDIA's MIG manager, as the GPU operator runs it, applies the configuration of that name from its file when the
// label changes, and says in the other how far it is (pending, rebooting, success, failed):
// https://github.com/NVIDIA/mig-parted/tree/main/deployments/container
inline constexpr std::string_view kMigConfig = "nvidia.com/mig.config";
inline constexpr std::string_view kMigConfigState = "nvidia.com/mig.config.state";

// Whether NVIDIA's MIG manager runs on the node: the operator's label nvidia.com/gpu.deploy.mig-manager says so, or,
// without it, one of the two above is there.
bool has_mig_manager(const api::Node& node);

// NVIDIA's MIG manager says that it is at the node's GPUs, for whomever.
bool mig_manager_cuts(const api::Node& node);

// False for any node without "dynamic". kInvalidInput, as a sentence with the way out, for one that asks for it and
// cannot have it: its GPUs' model or number is not known, or they are shared, or not advertised by profile, or not all
// of them are allocatable and nobody says which; with kCounts also where nobody is there who would cut them.
Result<model::DynamicMig> mig_of(const api::Node& node, DeviceKnowledge knowledge);

}  // namespace berth::bridge
