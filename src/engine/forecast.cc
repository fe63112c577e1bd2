// What comes next, played in a second engine (engine/forecast.h).
#include "engine/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "engine/in_the_way.h"
#include "engine/queued_workloads.h"
#include "engine/rehearsal.h"

namespace berth::engine {
namespace {

constexpr std::string_view kOnlyCuts = "when GPUs will be cut is not foreseen";
constexpr const char* kCutsToo =
    "as GPUs are cut now it would not start when all in its way have ended, and when they will be cut anew is not "
    "foreseen";

constexpr const char *kChecks = "when its AdmissionChecks are ready is not foreseen",
                     *kChecksThen = "it would have quota, and when its AdmissionChecks are ready then is not foreseen";
constexpr const char* kUnready =
    "nobody is let in before the pods of those that were admitted are ready, and when they are is not foreseen";

}  // namespace

Forecasts Engine::forecast(const ForecastLimits& limits) const {
  Forecasts out;
  InTheWay in_the_way(*this, now_, limits.refused);
  std::map<uint32_t, Forecast> by_class;  // what is in the way of its pods
  const QueueOrder before{&state_};
  PodSlot silent_first;  // of those that wait and declare nothing
  for (const PodSlot slot : state_.pods()) {
    const PodState& pod = state_.pod(slot);
    if (!waits(pod.pod) || pod.phase >= PodPhase::kHeld) continue;
    const auto [known, added] = by_class.try_emplace(pod.cls.value);
    if (added) in_the_way.count(state_.pod_class(pod.cls), known->second);
    out[pod.pod.uid] = known->second;
    if (!pod.pod.runtime && (!silent_first.valid() || before(slot, silent_first))) silent_first = slot;
  }
  std::set<std::string> unready;  // for whom starting is not foreseen
  for (const quota::WorkloadId id : workloads_->all()) {
    const quota::WorkloadStatus& status = admission().status(id);
    if (status.phase != quota::WorkloadPhase::kPending && status.phase != quota::WorkloadPhase::kQuotaReserved)
      continue;
    Forecast& forecast = out[status.workload.uid];
    in_the_way.count(id, forecast);
    if (status.phase == quota::WorkloadPhase::kQuotaReserved || !admission().waits_for_pods()) continue;
    if (forecast.unknown.empty()) forecast.unknown = kUnready;
    unready.insert(status.workload.uid);
  }
  if (out.empty()) return out;
  Rehearsal longest(*this, RuntimeRatios::kWhole, limits);
  longest.play();
  std::optional<Rehearsal> middle;
  if (ratios_.median() < RuntimeRatios::kWhole) middle.emplace(*this, ratios_.median(), limits).play();
  // What is not rehearsed: nodes that are, or may be, cut anew.
  const auto is_being_cut = [&](const auto& node) { return state_.node(node.second).is_being_cut(); };
  const bool any_cut = !state_.mig_nodes().empty() || std::ranges::any_of(state_.nodes_by_name(), is_being_cut);
  for (auto& [uid, forecast] : out) {
    if (const auto start = longest.started.find(uid); start != longest.started.end() && !unready.contains(uid)) {
      forecast.p50 = forecast.p90 = start->second - now_;
      forecast.unknown.clear();
      if (!middle) continue;
      const auto sooner = middle->started.find(uid);
      if (sooner != middle->started.end()) forecast.p50 = std::min(*forecast.p90, sooner->second - now_);
      continue;
    }
    const int64_t silent = forecast.blockers - forecast.declaring;
    if (!forecast.unknown.empty()) continue;
    const quota::WorkloadId then = longest.second.admission().find(uid);
    const bool waits_behind = any_cut && longest.waits_behind_cuts(uid);
    const bool may_be_cut = any_cut && in_the_way.might_be_cut_for(uid);
    if (then.valid() && longest.second.admission().status(then).phase == quota::WorkloadPhase::kQuotaReserved)
      forecast.unknown =
          admission().status(admission().find(uid)).phase == quota::WorkloadPhase::kPending ? kChecksThen : kChecks;
    else if (longest.cut_short) forecast.unknown = "too much would have to be played to find out";
    else if (forecast.blockers == 0)
      forecast.unknown = may_be_cut || waits_behind              ? std::string(kOnlyCuts)
                         : waits_behind_others(admission(), uid) ? "those before it in its queue would not start either"
                                                                 : "nothing that could end is in its way";
    else if (silent > 0)
      forecast.unknown =
          fmt::format("of {} in its way, {} declare no runtime, or have passed it", forecast.blockers, silent);
    else if (const PodSlot pod = state_.find_pod(uid); pod.valid() && silent_first.valid() && before(silent_first, pod))
      forecast.unknown = "one that waits before it declares no runtime";
    else if (longest.starts_behind_endless(uid)) forecast.unknown = "one that starts before it declares no runtime";
    else if (waits_behind) forecast.unknown = kOnlyCuts;
    else if (may_be_cut) forecast.unknown = longest.leaves_to_cuts ? std::string(kOnlyCuts) : kCutsToo;
    else forecast.unknown = "it would not start when all in its way have ended either";
  }
  return out;
}

}  // namespace berth::engine
