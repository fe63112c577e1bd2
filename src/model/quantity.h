// Quantity: a Kubernetes resource.Quantity read into an integer of its canonical unit, or refused.
//
// Canonical units: milli-cores for cpu, bytes for memory and ephemeral-storage, a plain count for everything else.
// Fractions of the unit round up, as Kubernetes's Value() and MilliValue() do. What overflows int64, is malformed
// ("1e400", "100E", "1GiB") or negative where that makes no sense is an error, never a wrong number: the real server
// has been seen to read "100E" as 0 (kubernetes/kubernetes#141166). What pods on a server ask for is the exception: the
// server takes such amounts, and they count as the largest one, 2^63-1. Source: k8s.io/apimachinery/pkg/api/resource.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::model {

// What becomes of a quantity that is larger than an int64 holds.
enum class Overflow : uint8_t { kRefused, kSaturates };

// The quantity in units of 1 (scale 0) or 1/1000 (scale 3), rounded up. Negative values are read, not refused. A number
// of more than 28 digits is refused unless it may saturate.
Result<int64_t> parse_quantity(std::string_view text, int scale = 0, Overflow overflow = Overflow::kRefused);

// The quantity of resource `name` in its canonical unit; negative values are refused.
Result<int64_t> parse_resource(std::string_view name, std::string_view text, Overflow overflow = Overflow::kRefused);

// How a user would write it: "500m", "64Gi", "8".
std::string format_resource(std::string_view name, int64_t value);

// Quota is counted in the canonical unit, but for nvidia.com/gpu: of that pods ask for shares, in millionths
// (model/gpu.h), and so it is counted. These are the units of one as people count it: 1'000'000 for nvidia.com/gpu,
// 1000 for cpu, else 1.
int64_t quota_units(std::string_view name);
// An amount in the canonical unit, as quota counts it; saturates.
int64_t to_quota(std::string_view name, int64_t amount);
// As parse_resource() and format_resource(), of quota: "0.25" and "250m" of nvidia.com/gpu are a quarter of one. More
// GPUs than 2^63-1 millionths count as these, and are written as the largest number that is read.
Result<int64_t> parse_quota(std::string_view name, std::string_view text);
std::string format_quota(std::string_view name, int64_t value);

// True for everything but cpu, memory, ephemeral-storage, pods and hugepages-*: names with a domain other than
// kubernetes.io, such as nvidia.com/gpu (IsExtendedResourceName in the API server's helpers).
bool is_extended_resource(std::string_view name);

// True for resources whose use makes a pod GPU work, which the work of any accelerator is: nvidia.com/gpu,
// nvidia.com/gpu.shared, nvidia.com/mig-*, amd.com/gpu and its partitions (amd.com/cpx_*), gpu.intel.com/*,
// habana.ai/gaudi, google.com/tpu, aws.amazon.com/neuron*, huawei.com/Ascend*, cambricon.com/mlu*, mthreads.com/*,
// enflame.com/*, metax-tech.com/*, hygon.com/dcu*.
bool is_gpu_resource(std::string_view name);

// What so much as quota counts it is of GPUs, in millionths; a replica or a MIG instance counts as one. 0 for what is
// no GPU. Saturates.
int64_t gpu_micros(std::string_view name, int64_t quota);

}  // namespace berth::model
