#include "apps/scheduler/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/decode.h"
#include "apps/scheduler/log.h"
#include "engine/invariants.h"
#include "io/system_clock.h"
#include "policy/registry.h"

namespace berth::apps {
namespace {

constexpr Duration kIdleTick = Duration::seconds(1);
constexpr int64_t kReportsPerCycle = 1000;
constexpr size_t kQueuedNotesMax = 5000;
constexpr size_t kEventsQueuedMax = 20'000;

Result<SeenPod> decode_seen_pod(std::string_view json, const bridge::SchedulerNames& served) {
  BERTH_TRY(pod, api::decode_pod(json));
  SeenPod out;
  out.pod = bridge::to_model(pod, served);
  if (out.pod.ours && out.pod.node_name.empty()) out.problem = bridge::annotation_problem(pod.metadata);
  const api::Condition* scheduled = pod.status.condition("PodScheduled");
  if (scheduled != nullptr && scheduled->status == "False" && scheduled->reason == "Unschedulable")
    out.told = scheduled->message;
  return out;
}

Result<model::Node> decode_model_node(std::string_view json) {
  BERTH_TRY(node, api::decode_node(json));
  return bridge::to_model(node);
}

Result<engine::NamespaceUpserted> decode_model_namespace(std::string_view json) {
  BERTH_TRY(object, api::decode_json<api::Namespace>(json));
  return bridge::to_event(object);
}

}  // namespace

Session::Session(SessionOptions options)
    : options_(std::move(options)),
      config_(*options_.configuration),
      clock_(io::SystemClock::instance()),
      served_(config_.scheduler_names.begin(), config_.scheduler_names.end()),
      engine_(*policy::make_policy_set(config_.score_weights), config_.engine) {}

Result<std::unique_ptr<Session>> Session::start(SessionOptions options) {
  std::unique_ptr<Session> session(new Session(std::move(options)));
  BERTH_TRY_VOID(session->open());
  return session;
}

Status Session::open() {
  const auto lane = [&](int in_flight) {
    io::CurlTransportOptions transport = options_.transport;
    transport.max_in_flight = in_flight;
    return io::CurlTransport::create(std::move(transport));
  };
  BERTH_TRY(watch, lane(16));  // each watch holds one
  BERTH_TRY(bind, lane(config_.client.bind_connections));
  BERTH_TRY(note, lane(config_.client.note_connections));
  watch_transport_ = std::move(watch);
  bind_transport_ = std::move(bind);
  note_transport_ = std::move(note);
  watch_client_ = std::make_unique<kube::Client>(*watch_transport_);
  bind_client_ = std::make_unique<kube::Client>(*bind_transport_);
  note_client_ = std::make_unique<kube::Client>(*note_transport_);
  kube::EventRecorderOptions events;
  events.controller = config_.scheduler_names.front();
  events.instance = options_.instance;
  events.max_in_flight = config_.client.note_connections;
  events.max_queued = kEventsQueuedMax;
  events_ = std::make_unique<kube::EventRecorder>(*note_client_, std::move(events));
  statuses_ = std::make_unique<StatusWriter>(*note_client_, *note_transport_, config_.client.note_connections,
                                             [metrics = options_.metrics](bool ok) { metrics->status_patch(ok); });
  binder_ = std::make_unique<Binder>(*bind_client_, *bind_transport_, config_.client.bind_timeout, options_.may_bind,
                                     [this](BindReport report) { inbox_.push(std::move(report)); });
  // Terminal pods hold nothing; failed ones are still watched, since some failed because of where we put them.
  pods_ = std::make_unique<kube::Reflector<SeenPod>>(
      *watch_client_, kube::ReflectorOptions{.resource = kube::kPods, .field_selector = "status.phase!=Succeeded"},
      [served = served_](std::string_view json) { return decode_seen_pod(json, served); },
      [this](PodUpdates updates) { inbox_.push(std::move(updates)); });
  nodes_ = std::make_unique<kube::Reflector<model::Node>>(
      *watch_client_, kube::ReflectorOptions{.resource = kube::kNodes}, &decode_model_node,
      [this](NodeUpdates updates) { inbox_.push(std::move(updates)); });
  namespaces_ = std::make_unique<kube::Reflector<engine::NamespaceUpserted>>(
      *watch_client_, kube::ReflectorOptions{.resource = kube::kNamespaces}, &decode_model_namespace,
      [this](NamespaceUpdates updates) { inbox_.push(std::move(updates)); });
  storage_ =
      std::make_unique<StorageWatch>(*watch_client_, [this](StorageUpdates batch) { inbox_.push(std::move(batch)); });
  volumes_ = std::make_unique<VolumeBinder>(engine_, *bind_client_, config_.volume_bind_timeout,
                                            config_.client.bind_timeout, volume_hooks());
  last_tick_ = clock_.monotonic().nanos;
  options_.metrics->session_began();
  nodes_->start();
  storage_->start();
  namespaces_->start();
  pods_->start();
  owner_ = std::thread([this] { run(); });
  return {};
}

Session::~Session() { stop(Duration{0}); }

void Session::stop(Duration drain) {
  if (!owner_.joinable()) return;
  inbox_.push(StopDeciding{});
  const Time limit = clock_.monotonic() + drain;
  while (binder_->outstanding() > 0 && clock_.monotonic() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  pods_->stop();
  nodes_->stop();
  namespaces_->stop();
  storage_->stop();
  bind_transport_->stop();  // ends what is left; their reports still reach the inbox
  stopping_ = true;
  inbox_.push(StopDeciding{});
  owner_.join();
  if (drain.nanos > 0) events_->flush(drain);
  note_transport_->stop();
  watch_transport_->stop();
}

std::string Session::trouble() const {
  for (const std::string& error :
       {pods_->last_error(), nodes_->last_error(), namespaces_->last_error(), storage_->last_error()})
    if (!error.empty()) return error;
  return "";
}

// The owner thread. Each round: take what has come, apply it, and run a cycle if anything could have changed.
void Session::run() {
  while (!stopping_) {
    Time now = clock_.monotonic();
    Duration wait = kIdleTick;
    if (cycle_due_) wait = Duration{0};
    else if (has_wakeup_) wait = std::clamp(wakeup_ - now, Duration{0}, kIdleTick);
    std::vector<Message> messages = inbox_.take(wait);
    now = clock_.monotonic();
    last_tick_ = now.nanos;
    if (!messages.empty()) engine_.apply(engine::ClockAdvanced{now});
    for (Message& message : messages) std::visit([this](auto& m) { handle(m); }, message);
    if (deciding_) volumes_->tick(now);
    const bool listed = pods_listed_ && nodes_listed_ && namespaces_listed_ && storage_listed();
    const bool due = !messages.empty() || cycle_due_ || (has_wakeup_ && wakeup_ <= now);
    if (listed && deciding_ && due) cycle(now);
    balance_lanes();
    if (now - published_at_ >= Duration::seconds(1)) publish(now);
  }
  publish(clock_.monotonic());
}

void Session::cycle(Time now) {
  const auto room = config_.client.max_outstanding_binds - static_cast<int64_t>(binder_->outstanding());
  engine::CycleLimits limits;
  limits.work = config_.cycle_max_work;
  limits.max_binds = options_.may_bind() ? std::max<int64_t>(room, 0) : 0;
  limits.max_reports = statuses_->queued() < kQueuedNotesMax ? kReportsPerCycle : 0;
  const engine::CycleResult result = engine_.run_cycle(now, limits);
  for (const engine::Decision& decision : result.decisions) carry_out(decision);
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

void Session::carry_out(const engine::Decision& decision) {
  if (decision.kind == engine::DecisionKind::kUnschedulable) return tell_unschedulable(decision);
  told_.erase(decision.pod_uid);
  if (decision.volumes.empty()) return send_bind(decision);
  log_debug("binding volumes", {{"pod", decision.namespace_name + "/" + decision.pod_name},
                                {"node", decision.node_name},
                                {"claims", std::to_string(decision.volumes.size())}});
  engine_.apply(engine::BindProgress{decision.pod_uid, engine::BindOutcome::kPreBinding});
  volumes_->begin(decision, volume_versions_, clock_.monotonic());
}

void Session::send_bind(const engine::Decision& decision) {
  engine_.apply(engine::BindProgress{decision.pod_uid, engine::BindOutcome::kSent});
  log_debug("binding", {{"pod", decision.namespace_name + "/" + decision.pod_name}, {"node", decision.node_name}});
  statuses_->forget(decision.pod_uid, [this, decision] { binder_->bind(decision); });
}

void Session::tell_unschedulable(const engine::Decision& decision) {
  options_.metrics->attempt("unschedulable", Duration{0});
  const auto [at, first] = told_.try_emplace(decision.pod_uid);
  if (at->second == *decision.message) return;
  at->second = *decision.message;
  const engine::PodSlot slot = engine_.state().find_pod(decision.pod_uid);
  const int64_t generation = slot.valid() ? engine_.state().pod(slot).pod.generation : 0;
  statuses_->write({decision.namespace_name, decision.pod_name, decision.pod_uid, decision.message, generation, first});
  events_->record(
      {.regarding = {.name_space = decision.namespace_name, .name = decision.pod_name, .uid = decision.pod_uid},
       .type = "Warning",
       .reason = "FailedScheduling",
       .action = "Scheduling",
       .note = *decision.message});
}

void Session::handle(BindReport& report) {
  const engine::PodSlot slot = engine_.state().find_pod(report.uid);
  options_.metrics->bind(to_string(report.end), report.took);
  if (report.end == BindEnd::kUnknown) {
    log_warn("a bind got no answer; asking the server", {{"uid", report.uid}, {"error", report.error}});
    return engine_.apply(engine::BindProgress{report.uid, engine::BindOutcome::kUnknown});
  }
  if (report.end == BindEnd::kGone) return engine_.apply(engine::PodDeleted{report.uid});
  if (report.end == BindEnd::kElsewhere)
    return engine_.apply(engine::PodUpserted{bridge::to_model(*report.seen, served_)});
  if (report.end == BindEnd::kFailed) {
    options_.metrics->attempt("error", report.took);
    log_warn("a bind failed; the pod backs off", {{"uid", report.uid}, {"error", report.error}});
    return engine_.apply(engine::BindProgress{report.uid, engine::BindOutcome::kFailed});
  }
  options_.metrics->attempt("scheduled", report.took);
  if (slot.valid()) {
    const engine::PodState& pod = engine_.state().pod(slot);
    options_.metrics->pod_scheduled(std::max(clock_.wall() - pod.pod.created, Duration{0}));
    if (engine::holds_room(pod.phase)) {
      const std::string& node = engine_.state().node(pod.node).node.name;
      events_->record({.regarding = {.name_space = pod.pod.namespace_name, .name = pod.pod.name, .uid = report.uid},
                       .reason = "Scheduled",
                       .action = "Binding",
                       .note = fmt::format("Successfully assigned {} to {}", pod.pod.full_name(), node)});
    }
  }
  engine_.apply(engine::BindProgress{report.uid, engine::BindOutcome::kSucceeded});
}

void Session::quarantine(const char* kind, const kube::Malformed& object) {
  options_.metrics->quarantined(kind);
  const std::string name = object.name_space.empty() ? object.name : object.name_space + "/" + object.name;
  log_error("an object was set aside: it cannot be understood",
            {{"kind", kind}, {"name", name}, {"error", object.error.message}});
  set_aside_.add(kind, name, object.error.message);
  if (object.name.empty()) return;
  events_->record({.regarding = {.kind = kind, .name_space = object.name_space, .name = object.name, .uid = object.uid},
                   .type = "Warning",
                   .reason = "Quarantined",
                   .action = "Scheduling",
                   .note = "Berth leaves this object alone: " + object.error.message});
}

// An annotation that cannot be meant: said once (repetitions join the event's series), and scheduling goes on without
// it.
void Session::warn_of(const SeenPod& seen) {
  if (seen.problem.empty()) return;
  events_->record({.regarding = {.name_space = seen.pod.namespace_name, .name = seen.pod.name, .uid = seen.pod.uid},
                   .type = "Warning",
                   .reason = "InvalidAnnotation",
                   .action = "Scheduling",
                   .note = seen.problem});
}

void Session::handle(PodUpdates& updates) {
  for (auto& update : updates) {
    if (auto* list = std::get_if<kube::ListReplaced<SeenPod>>(&update)) {
      doubtful_ = doubtful_ || list->went_back;
      engine::PodsReplaced pods;
      set_aside_.clear("Pod");
      told_.clear();
      for (SeenPod& seen : list->objects) {
        warn_of(seen);
        if (!seen.told.empty() && seen.pod.node_name.empty()) told_[seen.pod.uid] = std::move(seen.told);
        pods.pods.push_back(std::move(seen.pod));
      }
      engine_.apply(pods);
      pods_listed_ = true;
    } else if (auto* upserted = std::get_if<kube::Upserted<SeenPod>>(&update)) {
      warn_of(upserted->object);
      set_aside_.remove("Pod", upserted->object.pod.namespace_name, upserted->object.pod.name);
      if (!upserted->object.pod.node_name.empty()) told_.erase(upserted->object.pod.uid);
      engine_.apply(engine::PodUpserted{std::move(upserted->object.pod)});
    } else if (auto* deleted = std::get_if<kube::Deleted<SeenPod>>(&update)) {
      told_.erase(deleted->object.pod.uid);
      set_aside_.remove("Pod", deleted->object.pod.namespace_name, deleted->object.pod.name);
      engine_.apply(engine::PodDeleted{deleted->object.pod.uid});
    } else if (auto* malformed = std::get_if<kube::Malformed>(&update)) {
      if (!malformed->deleted) {
        quarantine("Pod", *malformed);
        continue;
      }
      set_aside_.remove("Pod", malformed->name_space, malformed->name);
      engine_.apply(engine::PodDeleted{malformed->uid});
    }
  }
}

void Session::handle(NodeUpdates& updates) {
  for (auto& update : updates) {
    if (auto* list = std::get_if<kube::ListReplaced<model::Node>>(&update)) {
      doubtful_ = doubtful_ || list->went_back;
      set_aside_.clear("Node");
      engine_.apply(engine::NodesReplaced{std::move(list->objects)});
      nodes_listed_ = true;
    } else if (auto* upserted = std::get_if<kube::Upserted<model::Node>>(&update)) {
      set_aside_.remove("Node", "", upserted->object.name);
      engine_.apply(engine::NodeUpserted{std::move(upserted->object)});
    } else if (auto* deleted = std::get_if<kube::Deleted<model::Node>>(&update)) {
      set_aside_.remove("Node", "", deleted->object.name);
      engine_.apply(engine::NodeDeleted{deleted->object.name});
    } else if (auto* malformed = std::get_if<kube::Malformed>(&update)) {
      engine_.apply(engine::NodeDeleted{malformed->name});  // takes no new work while it cannot be understood
      if (malformed->deleted) set_aside_.remove("Node", "", malformed->name);
      else quarantine("Node", *malformed);
    }
  }
}

void Session::handle(NamespaceUpdates& updates) {
  for (auto& update : updates) {
    if (auto* list = std::get_if<kube::ListReplaced<engine::NamespaceUpserted>>(&update)) {
      set_aside_.clear("Namespace");
      absl::flat_hash_set<std::string> gone = std::exchange(namespace_names_, {});
      for (const engine::NamespaceUpserted& each : list->objects) {
        gone.erase(each.name);
        namespace_names_.insert(each.name);
        engine_.apply(each);
      }
      for (const std::string& name : gone) engine_.apply(engine::NamespaceUpserted{name, model::Placement::kDefault});
      namespaces_listed_ = true;
    } else if (auto* upserted = std::get_if<kube::Upserted<engine::NamespaceUpserted>>(&update)) {
      set_aside_.remove("Namespace", "", upserted->object.name);
      namespace_names_.insert(upserted->object.name);
      engine_.apply(upserted->object);
    } else if (auto* deleted = std::get_if<kube::Deleted<engine::NamespaceUpserted>>(&update)) {
      set_aside_.remove("Namespace", "", deleted->object.name);
      namespace_names_.erase(deleted->object.name);
      engine_.apply(engine::NamespaceUpserted{deleted->object.name, model::Placement::kDefault});
    } else if (auto* malformed = std::get_if<kube::Malformed>(&update)) {
      if (malformed->deleted) set_aside_.remove("Namespace", "", malformed->name);
      else quarantine("Namespace", *malformed);
    }
  }
}

// Events give way while binds fill their lane, since both share the server: one event at a time instead of many. Not
// for long: when their queue is half full they flow again, and none is lost.
void Session::balance_lanes() {
  const bool busy = binder_->outstanding() >= static_cast<size_t>(config_.client.bind_connections);
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
  for (const auto& [uid, slot] : state.pods_by_uid()) {
    const engine::PodState& pod = state.pod(slot);
    pending.gated += pod.phase == engine::PodPhase::kNotQueued && pod.pod.gated && pod.pod.ours;
  }
  metrics.pending(pending);
  metrics.binds_outstanding(binder_->outstanding());
  double allocatable = 0, used = 0;
  for (const auto& [name, slot] : state.nodes_by_name()) {
    if (!state.node(slot).has_gpus) continue;
    for (uint32_t id = 0; id < state.resources().size(); ++id) {
      if (!state.resources().is_gpu(engine::ResourceId{id})) continue;
      allocatable += static_cast<double>(state.view(slot).allocatable(engine::ResourceId{id}));
      used += static_cast<double>(state.view(slot).used(engine::ResourceId{id}));
    }
  }
  metrics.gpus(allocatable, used);
  metrics.nodes(state.node_count());
  metrics.events(events_->stats());
  metrics.watch("pods", pods_->stats());
  metrics.watch("nodes", nodes_->stats());
  metrics.watch("namespaces", namespaces_->stats());
}

}  // namespace berth::apps
