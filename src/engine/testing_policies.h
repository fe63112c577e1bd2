// Two small policies for tests of the engine itself, which must not include the real ones.
#pragma once

#include <fmt/format.h>

#include "engine/policy_set.h"

namespace berth::engine::testing {

inline std::string short_detail(const PodClass& pod, const NodeView& node, const Reason& reason) {
  return fmt::format("asks {}, free {}", pod.request(reason.resource), node.free(reason.resource));
}
inline constexpr ReasonInfo kShort{.text = "Insufficient", .names_resource = true, .detail = &short_detail};

inline void room(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  for (const ResourceAmount& request : pod.requests)
    if (request.amount > node.free(request.id)) reasons.push_back({&kShort, request.id, 0});
}

// Nodes with more allocatable cpu are better, in whole cores.
inline int32_t cores(const PodClass&, const NodeView& node) {
  return static_cast<int32_t>(node.allocatable(kCpu) / 1000);
}

inline constexpr PolicyInfo kRoom = filter_policy("room", "keeps pods off full nodes", 10, &room);
inline constexpr PolicyInfo kCores = score_policy("cores", "prefers nodes with more cores", 1, &cores);

// Fits where there is room; prefers the node with the most cores, then the first by name.
inline PolicySet room_policies() { return {{&kRoom}, {{&kCores, 1}}}; }

}  // namespace berth::engine::testing
