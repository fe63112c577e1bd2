#include "engine/in_the_way.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>

#include "base/int128.h"
#include "engine/engine.h"
#include "engine/evaluate.h"
#include "engine/gpu_asks.h"
#include "engine/idle_gpus.h"
#include "engine/node_without.h"
#include "engine/queued_workloads.h"
#include "packing/mig_config.h"
#include "quota/admission.h"

namespace berth::engine {
namespace {

constexpr const char* kNeverFits = "it would not start with nothing in use either";
constexpr const char* kRefused = "pods of one in its way are refused, and when they will be made is not foreseen";

// Whether the node could have a pod of the class if nobody were there; terms between pods are not asked.
bool could_have(const PolicySet& policies, const PodClass& cls, const NodeView& view) {
  for (const ResourceAmount& request : cls.requests)
    if (request.amount > view.allocatable(request.id)) return false;
  Reasons reasons;
  run_filters(policies, cls, view, reasons);
  return std::ranges::all_of(reasons, [](const Reason& reason) { return reason.info->preemption_helps; });
}

// The GPUs that may be cut, but for those of which an agent tells that they are ill.
model::DynamicMig healthy(const model::Node& node) {
  model::DynamicMig out = node.mig;
  const auto told = node.cut_by_agent();
  if (!told.empty())
    out.devices = std::ranges::count_if(told, [](const model::GpuDevice& device) { return device.unhealthy.empty(); });
  return out;
}

// Whether it could, too, if the node's GPUs were cut for the class. Of one that others cut nobody knows what it will
// have.
bool could_have_if_cut(const PolicySet& policies, const State& state, const ResourceTable& resources,
                       const PodClass& cls, NodeSlot slot) {
  const NodeState& node = state.node(slot);
  const model::DynamicMig mig = healthy(node.node);
  if ((!cls.requests_gpu && !cls.shares_gpu) || (!mig && !node.is_being_cut())) return false;
  const NodeView view(node, resources, state.volumes(), state.mix());
  std::vector<ResourceAmount> has;
  model::ResourceList gpus;
  bool has_gpus = true;
  const auto could_be = [&](ResourceId id, int64_t asked) {
    const bool gpu = resources.is_gpu(id);
    if (gpu) gpus.add(resources.name(id), asked), has.push_back({id, asked});
    if (gpu) has_gpus &= asked <= view.allocatable(id);
    return gpu || asked <= view.allocatable(id);
  };
  for (const ResourceAmount& request : cls.requests)
    if (!could_be(request.id, request.amount)) return false;
  if (cls.shares_gpu && node.share_resource.valid()) could_be(node.share_resource, 1);
  if (!has_gpus && mig && !packing::can_be_cut_for(mig, gpus)) return false;
  NodeState cut = node;
  for (const ResourceAmount& each : has) {
    if (each.id.value >= cut.allocatable.size()) cut.allocatable.resize(each.id.value + 1, 0);
    cut.allocatable[each.id.value] = std::max(cut.allocatable[each.id.value], each.amount);
  }
  cut.repartitioning = cut.node.cut_by_others = false;
  return could_have(policies, cls, NodeView(cut, resources, state.volumes(), state.mix()));
}

// What one pod of the set asks for in the flavor of the queue where that is least.
int64_t least_asked(const model::ClusterQueue& queue, const quota::Flavors& flavors, const model::PodSet& set,
                    const std::string& resource) {
  int64_t least = set.requests.get(resource);
  for (const model::ResourceGroup& group : queue.groups)
    for (const model::FlavorQuotas& flavor : group.flavors)
      least = std::min(least, quota::asked_by_pod(set, resource, flavors, flavor.flavor));
  return least;
}

// Whether the fewest pods that will do ask for more than one user may have of the queue.
bool exceeds_limits_alone(const model::ClusterQueue& queue, const quota::Flavors& flavors,
                          const model::Workload& workload) {
  return std::ranges::any_of(queue.user_limits, [&](const auto& limited) {
    Int128 asked = 0;
    for (const model::PodSet& set : workload.pod_sets)
      asked += Int128{set.fewest()} * least_asked(queue, flavors, set, limited.first);
    return asked > limited.second;
  });
}

}  // namespace

bool waits_behind_others(const quota::Admission& admission, const std::string& uid) {
  const quota::WorkloadId id = admission.find(uid);
  return id.valid() && admission.status(id).reason == "PendingEvaluation" && admission.explain(id).position > 1;
}

// If it had the GPUs that it lacks, nothing else would keep the pod away.
bool may_be_cut_for(const Engine& engine, const PodClass& cls, const QueueRank& rank, NodeSlot slot) {
  const State& state = engine.state();
  if (!state.node(slot).present || !state.node(slot).node.mig || state.node(slot).is_being_cut()) return false;
  std::vector<PodSlot> kept = kept_room(state, state.node(slot));
  std::erase_if(kept, [&](PodSlot pod) { return queue_rank(state.pod(pod).pod) < rank; });
  const NodeState node = node_without(state, slot, kept);
  const NodeView view(node, state.resources(), state.volumes(), state.mix());
  std::vector<ResourceAmount> lacks;
  for (ResourceId id{0}; id.value < state.resources().size(); ++id.value) {
    const int64_t asked = cls.request(id) + (cls.shares_gpu && id == node.share_resource ? 1 : 0);
    if (state.resources().is_gpu(id) && asked > view.free(id)) lacks.push_back({id, asked - view.free(id)});
  }
  if (lacks.empty() || !lists_what_is_there(view) || !idle_could_be_cut_for(cls, view)) return false;
  NodeState cut = node;
  for (const ResourceAmount& lack : lacks) {
    if (lack.id.value >= cut.allocatable.size()) cut.allocatable.resize(lack.id.value + 1, 0);
    cut.allocatable[lack.id.value] += lack.amount;
  }
  Reasons reasons;
  return run_filters(engine.policies(), cls, NodeView(cut, state.resources(), state.volumes(), state.mix()), reasons);
}

bool might_be_cut_when_left(const Engine& engine, const PodClass& cls, NodeSlot slot) {
  const State& state = engine.state();
  const NodeState& node = state.node(slot);
  return node.present && node.node.mig && !node.is_being_cut() &&
         !could_have(engine.policies(), cls, state.view(slot)) &&
         could_have_if_cut(engine.policies(), state, state.resources(), cls, slot);
}

int64_t most_if_cut(const PolicySet& policies, const State& state, const PodClass& cls, NodeSlot slot, int64_t enough) {
  const NodeState& node = state.node(slot);
  if (!node.present || !could_have_if_cut(policies, state, state.resources(), cls, slot)) return 0;
  const NodeView view = state.view(slot);
  int64_t most = enough;
  model::ResourceList of_one, gpus;
  for (const ResourceAmount& request : cls.requests) {
    if (state.resources().is_gpu(request.id)) of_one.set(state.resources().name(request.id), request.amount);
    else if (request.amount > 0) most = std::min(most, view.allocatable(request.id) / request.amount);
  }
  const model::DynamicMig mig = healthy(node.node);
  if (!mig) return most;  // who knows what it will have
  if (cls.shares_gpu) {
    const model::GpuShare& share = cls.spec->gpu_share;
    const int64_t part =
        share.micros > 0 ? share.micros : model::part_of_memory(share, model::gpu_memory(node.node.labels));
    return std::min(most, mig.devices * std::max<int64_t>(1, model::kWholeGpu / std::max<int64_t>(1, part)));
  }
  int64_t out = 0;
  for (gpus = of_one; out < most && packing::can_be_cut_for(mig, gpus); gpus.add(of_one)) ++out;
  return std::max<int64_t>(out, 1);
}

InTheWay::InTheWay(const Engine& engine, Time now, std::set<std::string> refused)
    : engine_(engine), now_(now), refused_(std::move(refused)) {
  for (const quota::WantsPlace& wants : engine.admission().wanting_places()) options_[wants.id] = wants.options;
}

const std::vector<PodSlot>& InTheWay::of_place(quota::WorkloadId id) {
  const auto options = options_.find(id);
  const auto [known, added] = known_.try_emplace(options == options_.end() ? nullptr : options->second.get());
  if (added) known->second = on_nodes_for(id, options == options_.end() ? nullptr : options->second);
  return known->second;
}

std::vector<PodClass> InTheWay::classes_of(const model::Workload& workload, const Options& options,
                                           ResourceTable& resources) const {
  std::vector<PodClass> classes;
  for (const quota::PlaceOption& option : options == nullptr ? std::vector<quota::PlaceOption>() : *options)
    for (size_t set = 0; set < workload.pod_sets.size() && set < option.pod_sets.size(); ++set) {
      if (workload.pod_sets[set].spec == nullptr || option.pod_sets[set].count <= 0) continue;
      auto spec = std::make_shared<model::SchedulingSpec>(*workload.pod_sets[set].spec);
      quota::add_terms(quota::terms_of(option.pod_sets[set], engine_.admission().flavors()), *spec);
      spec->peers = {};
      spec->claims.clear();
      classes.push_back(compile_class(std::move(spec), resources));
    }
  return classes;
}

bool InTheWay::might_be_cut_for(std::span<const PodClass> classes, const ResourceTable& resources) const {
  const State& state = engine_.state();
  return std::ranges::any_of(state.nodes_by_name(), [&](const auto& node) {
    return state.node(node.second).present && std::ranges::any_of(classes, [&](const PodClass& cls) {
             return could_have_if_cut(engine_.policies(), state, resources, cls, node.second);
           });
  });
}

bool InTheWay::might_be_cut_for(const std::string& uid) {
  const State& state = engine_.state();
  if (const PodSlot pod = state.find_pod(uid); pod.valid()) {
    const ClassId cls = state.pod(pod).cls;
    const auto [known, added] = might_.try_emplace(cls.value);
    if (added) known->second = might_be_cut_for(std::span(&state.pod_class(cls), 1), state.resources());
    return known->second;
  }
  const quota::WorkloadId id = engine_.admission().find(uid);
  if (!id.valid()) return false;
  const model::Workload& workload = engine_.admission().status(id).workload;
  if (is_sliced(workload)) return false;
  const auto options = options_.find(id);
  if (options == options_.end()) return asks_for_gpus(workload);
  const auto [known, added] = might_with_.try_emplace(options->second.get());
  if (added) {
    ResourceTable resources = state.resources();
    const std::vector<PodClass> classes = classes_of(workload, options->second, resources);
    known->second = might_be_cut_for(classes, resources);
  }
  return known->second;
}

// Where its choices are not known, on all nodes.
std::vector<PodSlot> InTheWay::on_nodes_for(quota::WorkloadId id, const Options& options) const {
  const State& state = engine_.state();
  const model::Workload& workload = engine_.admission().status(id).workload;
  ResourceTable resources = state.resources();
  const std::vector<PodClass> classes = classes_of(workload, options, resources);
  std::vector<PodSlot> out;
  for (const auto& [name, node] : state.nodes_by_name()) {
    const auto here = [&, node = node](const PodClass& cls) {
      return could_have(engine_.policies(), cls, state.view(node));
    };
    if (!state.node(node).present || (options != nullptr && std::ranges::none_of(classes, here))) continue;
    for (const PodSlot slot : state.node(node).pods) {
      const PodState& pod = state.pod(slot);
      if (holds_room(pod.phase) && !pod.pod.daemon && pod.pod.workload != workload.full_name()) out.push_back(slot);
    }
  }
  return out;
}

void InTheWay::count(const std::optional<Time>& end, Forecast& out) const {
  ++out.blockers;
  out.declaring += end && *end > now_ ? 1 : 0;
}

// Those on nodes which could have the class's pods without them.
void InTheWay::count(const PodClass& cls, Forecast& out) const {
  FailureSets sets;
  Candidates candidates;
  WorkBudget unlimited{INT64_MAX};
  const State& state = engine_.state();
  candidates.refresh(state, engine_.policies(), cls, sets, unlimited);
  if (!candidates.objection().empty()) return;
  for (const auto& [name, node] : state.nodes_by_name()) {
    const FailureSetId failure = candidates.failure(node);
    if (!failure.valid() || failure == kFits || !sets.preemption_helps(failure)) continue;
    for (const PodSlot slot : state.node(node).pods) {
      const PodState& pod = state.pod(slot);
      if (!pod.pod.daemon && pod.phase != PodPhase::kNominated) count_pod(slot, out);
    }
  }
}

// Only the user's own are in the way of one whose user has too much.
void InTheWay::count_users(quota::WorkloadId id, Forecast& out) const {
  const quota::Admission& admission = engine_.admission();
  const quota::WorkloadStatus& status = admission.status(id);
  const auto queue = admission.cluster_queues().find(status.cluster_queue);
  if (queue != admission.cluster_queues().end() &&
      exceeds_limits_alone(queue->second, admission.flavors(), status.workload)) {
    out.unknown = kNeverFits;
    return;
  }
  const quota::Ledger& ledger = admission.ledger();
  for (const quota::WorkloadId holder : ledger.holders(ledger.tree().queue(status.cluster_queue)))
    if (admission.status(holder).workload.user == status.workload.user) count_holder(holder, out);
}

void InTheWay::count_holder(quota::WorkloadId holder, Forecast& out) const {
  if (engine_.admission().status(holder).phase == quota::WorkloadPhase::kQuotaReserved)
    out.unknown = "one in its way waits for its AdmissionChecks, and when these are ready is not foreseen";
  const bool is_refused = refused_.contains(engine_.admission().status(holder).workload.uid);
  if (is_refused) out.unknown = kRefused;
  count(is_refused ? std::nullopt : engine_.expected_end(holder), out);
}

// One that has a place, or a stand-in, which stands for a pod of its workload.
void InTheWay::count_pod(PodSlot slot, Forecast& out) const {
  const model::Pod& pod = engine_.state().pod(slot).pod;
  const auto holder = pod.stand_in ? engine_.workloads().find(pod.workload) : std::nullopt;
  if (holder) count_holder(*holder, out);
  else count(engine_.expected_end(slot), out);
}

// Those that hold the quota which it lacks; where it lacks none, who stands where it could. Nobody is in the way of one
// that has no turn, waits for its checks, or asks for what there can never be.
void InTheWay::count(quota::WorkloadId id, Forecast& out) {
  const quota::Admission& admission = engine_.admission();
  const quota::WorkloadStatus& status = admission.status(id);
  if (status.phase == quota::WorkloadPhase::kQuotaReserved) return;
  const quota::WaitingFor waits = admission.explain(id);
  if (waits.position == 0)
    out.unknown = fmt::format(
        "it {}: {}", status.reason == "BudgetSpent" ? "is held back" : "is not waiting in a queue", status.message);
  if (status.reason == "ExceedsMaxQuota" || status.reason == "NoMatchingFlavor") out.unknown = kNeverFits;
  if (!out.unknown.empty()) return;
  if (status.reason == "UserLimit") return count_users(id, out);
  std::set<std::string> lacks, has, holders;  // resources, and workloads
  for (const quota::WaitingFor::Account& account : waits.quota)
    (account.short_by > 0 ? lacks : has).insert(account.resource);
  for (const std::string& resource : has) lacks.erase(resource);  // in some flavor there is enough
  if (status.reason == "WaitingForPlace") lacks.clear();
  // Where no node could have it in the flavors with quota, it is the quota of the others that could become free.
  const bool of_others = lacks.empty() && of_place(id).empty();
  for (const quota::WaitingFor::Account& account : waits.quota)
    for (const auto& holder : account.holders)
      if (of_others ? account.short_by > 0 : lacks.contains(account.resource)) holders.insert(holder.workload);
  for (const std::string& name : holders)
    if (const auto holder = engine_.workloads().find(name)) count_holder(*holder, out);
  if (!lacks.empty()) return;
  for (const PodSlot slot : of_place(id)) {
    const PodState& pod = engine_.state().pod(slot);
    if (pod.phase < PodPhase::kHeld) continue;
    count_pod(slot, out);
  }
}

}  // namespace berth::engine
