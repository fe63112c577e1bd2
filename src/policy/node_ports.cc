// Turns a pod away from nodes where one of its host ports is taken.
// Source: kube-scheduler's NodePorts plugin.
#include <fmt/format.h>

#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr ReasonInfo kPortTaken{.text = "node(s) didn't have free ports for the requested pod ports",
                                .preemption_helps = true,
                                .detail = [](const PodClass& pod, const NodeView&, const Reason& reason) {
                                  return fmt::format("host port {} is taken",
                                                     pod.spec->host_ports.at(reason.index).port);
                                }};

void node_ports(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  const auto& wanted = pod.spec->host_ports;
  for (uint32_t i = 0; i < wanted.size(); ++i)
    for (const model::HostPort& taken : node.host_ports())
      if (wanted[i].clashes_with(taken)) return reasons.push_back({&kPortTaken, {}, i});
}

}  // namespace

extern const PolicyInfo kNodePorts =
    filter_policy("node-ports", "turns pods away from nodes where a host port is taken", 50, &node_ports);

}  // namespace berth::policy
