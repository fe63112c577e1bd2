#include "queueing/topology_gates.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/kueue_names.h"
#include "queueing/write_json.h"

namespace berth::queueing {
namespace {

bool has(const GatedPod& pod, std::string_view gate) { return std::ranges::find(pod.gates, gate) != pod.gates.end(); }

}  // namespace

void TopologyGates::see(GatedPod pod) {
  if (has(pod, api::kTopologyGate) && !has(pod, api::kAdmissionGate)) pods_[pod.uid].pod = std::move(pod);
  else gone(pod.uid);
}

std::vector<Write> TopologyGates::look(const IsLetIn& is_let_in, Time now, size_t room) {
  std::vector<Write> writes;
  for (auto& [uid, record] : pods_) {
    if (writes.size() >= room) break;
    if (!record.lane.is_free(now) || !is_let_in(uid)) continue;
    Json gates = Json::array();
    for (const std::string& gate : record.pod.gates)
      if (gate != api::kTopologyGate) gates.push_back({{"name", gate}});
    const Json metadata = {{"uid", uid}, {"resourceVersion", record.pod.resource_version}};
    record.lane.busy = true;
    writes.push_back({.kind = Write::Kind::kPatchPod,
                      .party = Write::Party::kGate,
                      .namespace_name = record.pod.namespace_name,
                      .name = record.pod.name,
                      .body = Json{{"metadata", metadata}, {"spec", {{"schedulingGates", std::move(gates)}}}}.dump(),
                      .object = uid});
  }
  return writes;
}

void TopologyGates::answered(const Answer& answer, Time now) {
  const auto known = pods_.find(answer.write.object);
  if (known == pods_.end()) return;
  if (answer.stored) pods_.erase(known);
  else known->second.lane.answered(answer, now);
}

}  // namespace berth::queueing
