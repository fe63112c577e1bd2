// Session's owner thread: turn after turn, each bounded (apps/scheduler/turn_plan.h).
#include <algorithm>
#include <set>
#include <type_traits>

#include "apps/scheduler/log.h"
#include "apps/scheduler/session.h"
#include "engine/fragmentation.h"

namespace berth::apps {
namespace {

constexpr Duration kIdleTick = Duration::seconds(1);
constexpr int64_t kReportsPerCycle = 1000;
constexpr size_t kQueuedNotesMax = 5000;

template <typename T>
bool has_list(const std::vector<kube::WatchUpdate<T>>& updates) {
  return std::any_of(updates.begin(), updates.end(),
                     [](const auto& each) { return std::holds_alternative<kube::ListReplaced<T>>(each); });
}

}  // namespace

// Each round: wait for something to come, or for the time to do something; then a turn.
void Session::run() {
  while (!stopping_) {
    Duration wait = kIdleTick;
    if (cycle_due_ || !backlog_.empty()) wait = Duration{0};
    else if (has_wakeup_) wait = std::clamp(wakeup_ - clock_.monotonic(), Duration{0}, kIdleTick);
    fetch(wait);
    turn();
  }
  fetch(Duration{0});
  for (Message& message : backlog_) {  // binds and evictions that ended last, for their events
    if (auto* bind = std::get_if<BindReport>(&message)) handle(*bind);
    else if (auto* eviction = std::get_if<EvictionReport>(&message)) handle(*eviction);
  }
  backlog_.clear();
  publish(clock_.monotonic());
}

void Session::fetch(Duration wait) {
  for (Message& message : inbox_.take(wait)) backlog_.push_back(std::move(message));
}

// Applies what has come, as much as a turn may take; runs a cycle if anything could have changed; hands out decisions.
void Session::turn() {
  const Time began = clock_.monotonic();
  last_tick_ = began.nanos;
  plan_.begin(began);
  const bool lists = apply_messages();
  const Time now = clock_.monotonic();
  if (deciding_) volumes_->tick(now);
  const bool queues_listed = queues_->listed();
  const bool listed = pods_listed_ && nodes_listed_ && namespaces_listed_ && budgets_listed() && storage_listed() &&
                      (queues_listed || queues_->overdue(now));
  if (listed != std::exchange(all_listed_, listed)) cycle_due_ = true;
  if (listed && deciding_) follow_cuts(now);
  const bool due = (listed && queues_->tell_engine(now, clock_.wall())) || plan_.messages() > 0 || cycle_due_ ||
                   (has_wakeup_ && wakeup_ <= now);
  if (listed && deciding_ && due) cycle(now);
  if (listed && queues_listed && deciding_ && options_.may_bind()) {
    queues_->write(now, clock_.wall());
    cycle_due_ |= queues_->tell_engine(now, clock_.wall());
  }
  balance_lanes();
  if (now - published_at_ >= Duration::seconds(1)) {
    remind(now);
    publish(now);
  }
  if (due) options_.metrics->owner_turn(clock_.monotonic() - began, config_.turn_max, plan_.updates(), lists);
}

// True when a list was among them.
bool Session::apply_messages() {
  bool lists = false;
  if (!backlog_.empty()) engine_.apply(engine::ClockAdvanced{clock_.monotonic()});
  while (!backlog_.empty()) {
    Message& message = backlog_.front();
    size_t updates = 1;
    bool list = false;
    std::visit(
        [&](const auto& m) {
          if constexpr (std::is_same_v<decltype(m), const StorageUpdates&>)
            updates = m.updates.size(), list = has_list(m.updates);
          else if constexpr (std::is_same_v<decltype(m), const QueueMessage&>) {
            if (const auto* batch = std::get_if<QueueUpdates>(&m))
              updates = batch->updates.size(), list = has_list(batch->updates);
          } else if constexpr (requires { m.size(); }) updates = m.size(), list = has_list(m);
        },
        message);
    if (!plan_.take(updates, clock_.monotonic())) break;
    lists |= list;
    std::visit([this](auto& m) { handle(m); }, message);
    backlog_.pop_front();
  }
  return lists;
}

void Session::cycle(Time now) {
  const auto room = config_.client.max_outstanding_binds - static_cast<int64_t>(binder_->outstanding());
  engine::CycleLimits limits;
  limits.work = plan_.work();
  limits.max_binds = options_.may_bind() ? std::max<int64_t>(room, 0) : 0;
  limits.max_reports = statuses_->queued() < kQueuedNotesMax ? kReportsPerCycle : 0;
  const engine::CycleResult result = engine_.run_cycle(now, limits);
  plan_.cycle_took(clock_.monotonic() - now, result.work_used);
  for (const engine::Decision& decision : result.decisions) carry_out(decision);
  count_victims(result.decisions);
  queues_->decided(result.admissions, clock_.wall());
  // Unfinished for want of answers: the next BindReport wakes us. For want of work units: go on at once.
  const bool saturated = static_cast<int64_t>(binder_->outstanding()) >= config_.client.max_outstanding_binds;
  cycle_due_ = result.unfinished && !saturated && limits.max_reports > 0 && limits.max_binds > 0;
  has_wakeup_ = result.has_wakeup;
  wakeup_ = result.wakeup;
  if (result.unfinished && !cycle_due_ && !saturated) {
    const Time retry = now + Duration::millis(200);
    wakeup_ = has_wakeup_ ? std::min(wakeup_, retry) : retry;
    has_wakeup_ = true;
  }
  if (!result.unfinished || result.held) repartition(now);
  const Duration took = clock_.monotonic() - now;
  options_.metrics->cycle(took, result.work_used);
  if (!result.decisions.empty())
    log_debug("cycle", {{"decisions", std::to_string(result.decisions.size())},
                        {"work", std::to_string(result.work_used)},
                        {"max_work", std::to_string(limits.work)},
                        {"took", format_duration(took)}});
  if (!ready_.exchange(true))
    log_info("scheduling", {{"nodes", std::to_string(engine_.state().node_count())},
                            {"pods", std::to_string(engine_.state().pod_count())}});
}

// Events give way while binds fill their lane or admissions are being written, since all share the server: one event at
// a time instead of many. Not for long: when their queue is half full they flow again, and none is lost.
void Session::balance_lanes() {
  const bool busy =
      binder_->outstanding() >= static_cast<size_t>(config_.client.bind_connections) || queues_->decisions_under_way();
  const bool hold = busy && events_->stats().queued < kEventsQueuedMax / 2;
  if (hold == notes_held_) return;
  notes_held_ = hold;
  events_->set_max_in_flight(hold ? 1 : config_.client.note_connections);
}

// Gauges: once a second, since some of them look at everything.
void Session::publish(Time now) {
  published_at_ = now;
  Metrics& metrics = *options_.metrics;
  const engine::State& state = engine_.state();
  PendingCounts pending;
  pending.unschedulable = engine_.unschedulable_pods();
  pending.active = engine_.pending_pods() - pending.unschedulable;
  pending.backoff = engine_.backoff_pods();
  for (const engine::PodSlot slot : state.pods()) {
    const engine::PodState& pod = state.pod(slot);
    pending.gated += pod.phase == engine::PodPhase::kNotQueued && pod.pod.gated && pod.pod.ours;
  }
  metrics.pending(pending);
  metrics.binds_outstanding(binder_->outstanding());
  metrics.binds_throttled(binder_->throttled());
  std::set<std::string> pods, workloads;  // with GPUs kept
  for (const auto& [node, kept] : engine_.kept_gpus().all())
    (engine_.state().find_pod(kept.owner).valid() ? pods : workloads).insert(kept.owner);
  metrics.reservations(engine_.reserved_pods().size() + pods.size(),
                       engine_.admission().kept().rooms.size() + workloads.size(),
                       engine_.reservations() + engine_.admission().kept().in_all);
  const engine::GpuTotals gpus = engine::sum_gpus(state);
  metrics.gpus(gpus);
  metrics.fragmentation(mig::measure_fragmentation(engine_, repartitioner_.idle_devices()));
  metrics.nodes(state.node_count());
  metrics.repartitioning(mig_->changing().size());
  metrics.owner_backlog(backlog_.size());
  metrics.events(events_->stats());
  metrics.watch("pods", pods_->stats());
  metrics.watch("nodes", nodes_->stats());
  metrics.watch("namespaces", namespaces_->stats());
  metrics.watch("poddisruptionbudgets", budgets_->stats());
  for (const auto& [resource, stats] : storage_->stats()) metrics.watch(resource, stats);
  for (const auto& [resource, stats] : queues_->stats()) metrics.watch(resource, stats);
}

}  // namespace berth::apps
