// What a Kubernetes node says of MIG: whether Berth may choose the geometry of its GPUs, and of what model they are.
//
// Sources: NVIDIA GPU feature discovery's labels nvidia.com/gpu.product and .count, which with the strategy `mixed`
// counts all GPUs of the product, cut or whole, and nvidia.com/mig.strategy:
// https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery
#pragma once

#include <string_view>

#include "api/cluster.h"
#include "base/result.h"
#include "model/node.h"

namespace berth::bridge {

// Label or annotation of nodes: "dynamic" lets Berth choose the geometry, "static" and its absence do not.
inline constexpr std::string_view kMigPolicy = "berth.dev/mig-policy";

// False for any node without "dynamic". kInvalidInput, as a sentence with the way out, for one that asks for it and
// cannot have it: its GPUs' model or number is not known, or they are shared, or not advertised by profile.
Result<model::DynamicMig> mig_of(const api::Node& node);

}  // namespace berth::bridge
