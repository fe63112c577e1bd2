// What a pod set asks of the places of its pods in Kueue's words: slices, each in one domain; and which pod is which.
// Source: KEP-2724, https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/meta.h"
#include "api/reader.h"
#include "base/result.h"
#include "model/peers.h"

namespace berth::api {

inline constexpr size_t kSliceLayersMax = 3;

// The slices that a template's annotations cut a set of `count` pods into, the widest first; empty: none. An error says
// which annotation is wrong, why, and the way out.
Result<std::vector<model::SliceLayer>> slice_layers(const ObjectMeta& metadata, int32_t count);

// The levels as they are listed, whether or not they make sense; and as the annotation's value.
void read_slice_layers(const Reader& reader, std::vector<model::SliceLayer>& out);
std::string to_annotation(const std::vector<model::SliceLayer>& layers);

// The pod's number in its set: its completion index, its index in its group, or its replica index; none: it has none.
std::optional<int32_t> pod_index(const ObjectMeta& metadata);

}  // namespace berth::api
