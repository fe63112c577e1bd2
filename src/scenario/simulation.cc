#include "scenario/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bridge/to_model.h"
#include "engine/fragmentation.h"
#include "engine/invariants.h"
#include "scenario/delivery.h"
#include "workloads/job/job.h"

namespace berth::scenario {
namespace {

constexpr int64_t kCyclesPerTimeMax = 1'000'000;  // at one moment; each but the last decides something
constexpr int64_t kIdleWakeupsMax = 10'000;       // one after another while nothing else is to happen
constexpr int kForeseenMax = 16;                  // before the end
// Where time alone has helped nobody for so long, it helps nobody: a budget's longest period has passed twelve times.
constexpr Duration kIdleMax = Duration::seconds(400 * 86400);
// So many pods that come in the place of others, and as many times those there are, while none ends, go on for ever.
constexpr int64_t kReplacedMax = 1'000, kReplacedEachMax = 4;

// How many pods a workload makes in all, before any of them is made.
int64_t pods_in_all(const api::Object& object, size_t nodes) {
  if (const auto* job = std::get_if<api::Job>(&object)) return workloads::total_pods(*job);
  if (const auto* deployment = std::get_if<api::Deployment>(&object)) return deployment->replicas;
  if (const auto* replicaset = std::get_if<api::ReplicaSet>(&object)) return replicaset->replicas;
  if (const auto* statefulset = std::get_if<api::StatefulSet>(&object)) return statefulset->replicas;
  if (std::holds_alternative<api::DaemonSet>(object)) return static_cast<int64_t>(nodes);
  return std::holds_alternative<api::Pod>(object) ? 1 : 0;
}

}  // namespace

Simulation::Simulation(SimulationOptions options)
    : options_(std::move(options)),
      engine_(options_.policies, options_.engine, options_.record),
      rng_(options_.shuffle_seed),
      repartitioner_(options_.repartition) {}

Status Simulation::submit(std::vector<Manifest> manifests) {
  int64_t wanted = made_pods_;
  for (const Manifest& manifest : manifests) wanted += pods_in_all(manifest.object, nodes_.size());
  if (wanted > kSimulatedPodsMax)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{} pods are more than the {} that a simulation holds; lower replicas or parallelism",
                            wanted, kSimulatedPodsMax));
  expected_pods_ = wanted;
  for (Manifest& manifest : manifests) {
    const Duration after = simulated(manifest.object, kSimulatedArrival).value_or(Duration{0});
    names_.reserve(manifest.object);
    workloads_.push_back({std::move(manifest)});
    if (workloads_.back().manifest.stored != nullptr) expect_resumed(workloads_.size() - 1);
    schedule(now_, after, DueKind::kArrival, workloads_.size() - 1);
  }
  process_due();
  return {};
}

void Simulation::schedule(Time from, Duration after, DueKind kind, size_t which) {
  if (after > kSimulatedDurationMax || from.nanos > INT64_MAX / 2) return;  // later than anything that is simulated
  due_.emplace(from + after, kind, sequence_++, which);
}

void Simulation::process_due() {
  // Nodes, namespaces, limits and storage of a batch arrive before the workloads that look at them.
  std::vector<Due> arrivals;
  const auto later = [&](const Due& due) {
    const api::Object& object = workloads_[std::get<3>(due)].manifest.object;
    return !std::holds_alternative<api::Node>(object) && !std::holds_alternative<api::Namespace>(object) &&
           !is_storage(object) && !is_queueing(object) && !is_limit(object);
  };
  while (!due_.empty() && std::get<Time>(*due_.begin()) <= now_) {
    const Due due = *due_.begin();
    due_.erase(due_.begin());
    const size_t which = std::get<3>(due);
    switch (std::get<DueKind>(due)) {
      case DueKind::kArrival: arrivals.push_back(due); break;
      case DueKind::kJobDeadline:
        if (deadline_of(workloads_[which]) == std::get<Time>(due)) stop_job(which, kDeadlineExceeded);
        break;
      case DueKind::kWorkloadEnds:
        if (const auto since = queues_.admitted_at({which, SIZE_MAX});
            since && *since + *simulated(workloads_[which].manifest.object, kSimulatedRuntime) == std::get<Time>(due))
          queues_.finish({which, SIZE_MAX}, now_);
        break;
      case DueKind::kNodeCut: cut_node(which); break;
      case DueKind::kPodReady:
        if (pods_[which].stage == Stage::kRunning) set_ready(pods_[which], true);
        break;
      case DueKind::kPodGone: {
        const bool again = pods_[which].preempted && keeps_name(pods_[which]) && pods_[which].stage == Stage::kRunning;
        remove(which);
        if (again) replace_pod(which);
        else if (const size_t maker = pods_[which].workload; maker != SIZE_MAX) next_job_pods(maker), follow_job(maker);
        break;
      }
      case DueKind::kPodEnds: {
        if (pods_[which].stage != Stage::kRunning) break;
        const auto runtime = simulated(pods_[which].object, kSimulatedRuntime);
        const bool in_time = runtime && *pods_[which].started + *runtime <= now_;
        end(which, in_time ? "Succeeded" : "Failed", in_time ? "Completed" : kDeadlineExceeded, false);
      }
    }
  }
  std::stable_partition(arrivals.begin(), arrivals.end(), [&](const Due& due) { return !later(due); });
  std::stable_partition(arrivals.begin(), arrivals.end(),
                        [&](const Due& due) { return is_limit(workloads_[std::get<3>(due)].manifest.object); });
  // Classes before the claims that may want the default one.
  std::stable_partition(arrivals.begin(), arrivals.end(), [&](const Due& due) {
    return std::holds_alternative<api::StorageClass>(workloads_[std::get<3>(due)].manifest.object);
  });
  for (const Due& due : arrivals)
    if (const size_t which = std::get<3>(due); is_limit(workloads_[which].manifest.object)) arrive(which);
    else count_if_stored(which);
  for (const Due& due : arrivals)
    if (const size_t which = std::get<3>(due); !is_limit(workloads_[which].manifest.object)) arrive(which);
  follow_resumed();
  if (!arrivals.empty()) storage_.reconcile();
}

void Simulation::deliver() {
  std::vector<engine::Event> events;
  events.swap(outbox_);
  if (options_.shuffle_seed != 0) shuffle_delivery(events, rng_);
  for (engine::Event& event : events) engine_.apply(std::move(event));
}

void Simulation::settle() {
  for (int64_t cycle = 0; cycle < kCyclesPerTimeMax; ++cycle) {
    process_due();
    retry_refused_pods();
    let_go();
    follow_readiness();
    update_budgets();
    deliver();
    const engine::CycleResult result = engine_.run_cycle(now_);
    for (const engine::Decision& decision : result.decisions) carry_out(decision);
    for (const quota::AdmissionDecision& decision : result.admissions) carry_out(decision);
    if (result.held || (outbox_.empty() && !result.unfinished)) repartition();
    wakeup_ = repartitioner_.wakeup();
    in_vain_ = !wakeup_ && result.only_reserves;
    if (result.has_wakeup) wakeup_ = std::min(wakeup_.value_or(result.wakeup), result.wakeup);
    if (options_.check_invariants)
      for (const std::string& sentence : engine::broken_invariants(engine_.engine()))
        broken_.push_back(fmt::format("at {}: {}", format_duration(now_ - Time{}), sentence));
    if (options_.check_invariants) check_limits();
    note_gpus_in_use();
    if (on_cycle_) on_cycle_();
    const bool is_over = due_.empty() || std::get<Time>(*due_.begin()) > now_;
    const auto evicts = [](const quota::AdmissionDecision& decision) {  // who has no pods lets go at once
      return decision.kind == quota::AdmissionDecision::Kind::kEvict;
    };
    if (outbox_.empty() && !result.unfinished && is_over && std::ranges::none_of(result.admissions, evicts)) return;
  }
}

// With shares, how many GPUs are in use is the engine's to say: one that is shared is in use once.
void Simulation::note_gpus_in_use(const std::optional<GpuCount>& told) {
  if (!told && !shares_gpus_) return;
  const engine::GpuTotals all = told ? engine::GpuTotals{} : engine::sum_gpus(engine().state());
  const GpuCount now = told.value_or(GpuCount{all.used, all.mig_used});
  gpus_peak_.gpus = std::max(gpus_peak_.gpus, now.gpus);
  gpus_peak_.mig_instances = std::max(gpus_peak_.mig_instances, now.mig_instances);
}

void Simulation::carry_out(const engine::Decision& decision) {
  SimPod& pod = pods_[by_uid_.at(decision.pod_uid)];
  if (decision.kind == engine::DecisionKind::kEvict) return evict(by_uid_.at(decision.pod_uid), decision.preemptor_uid);
  if (decision.kind == engine::DecisionKind::kNominate) pod.nominated_node = decision.node_name;
  if (decision.kind != engine::DecisionKind::kBind) {
    pod.verdict = decision.message;
    return;
  }
  if (pod.feasible_count == 0) {
    pod.feasible = decision.feasible;
    pod.feasible_count = decision.feasible_count;
  }
  pod.gpu_devices = engine().state().devices_of(engine().state().find_pod(decision.pod_uid));
  if (!decision.volumes.empty())
    storage_.bind(decision.namespace_name, decision.volumes, nodes_.at(decision.node_name).metadata.labels);
  const auto plan = planned_.find(pod_name(pod.object));
  if (plan == planned_.end() || plan->second.empty()) {
    outbox_.emplace_back(engine::BindProgress{decision.pod_uid, engine::BindOutcome::kSucceeded});
    return start(pod, decision.node_name);
  }
  const BindFate fate = plan->second.front();
  plan->second.pop_front();
  const bool unknown = fate == BindFate::kUnknown;
  if (unknown) pod.unknown_node = decision.node_name;
  outbox_.emplace_back(
      engine::BindProgress{decision.pod_uid, unknown ? engine::BindOutcome::kUnknown : engine::BindOutcome::kFailed});
}

std::optional<Time> Simulation::next_time() const {
  std::optional<Time> next = wakeup_;
  if (!due_.empty()) next = std::min(next.value_or(Time{INT64_MAX}), std::get<Time>(*due_.begin()));
  return next;
}

void Simulation::advance(Duration duration) {
  const Time until = now_ + duration;
  settle();
  for (auto next = next_time(); next && *next <= until; next = next_time()) {
    now_ = std::max(*next, now_ + Duration{1});
    settle();
  }
  now_ = std::max(now_, until);
  settle();
}

bool Simulation::run_to_end(std::function<void()> on_cycle) {
  on_cycle_ = std::move(on_cycle);
  settle();
  int64_t idle = 0, ended = -1, pods_max = 0;
  bool goes_round = false;
  int foreseen = 0;  // times: what happens again and again, each time, is foreseen in the end
  const auto foresee = [&] {
    if (!options_.forecasts || (foreseen_ && foreseen_->first >= happened_)) return;
    foreseen_ = {now_, forecast()};
    ++foreseen;
  };
  for (auto next = next_time(); next && idle < kIdleWakeupsMax && !(in_vain_ && due_.empty()); next = next_time()) {
    if (std::exchange(ended, ended_pods_) != ended_pods_)
      pods_max = expected_pods_ + kReplacedMax + kReplacedEachMax * std::ssize(pods_);
    goes_round = std::ssize(pods_) > pods_max;
    if (goes_round) break;
    idle = due_.empty() || std::get<Time>(*due_.begin()) > *next ? idle + 1 : 0;
    if (due_.empty() && *next - happened_ > kIdleMax) break;
    // From here on the engine alone wants to be woken. Where that is in vain, as for a verdict that is told again,
    // these are the forecasts of the end: what time passes meanwhile shortens nobody's wait.
    if (due_.empty() && foreseen < kForeseenMax) foresee();
    now_ = std::max(*next, now_ + Duration{1});
    settle();
  }
  foresee();
  on_cycle_ = nullptr;
  return !goes_round;
}

}  // namespace berth::scenario
