#include "apps/scheduler/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/decode.h"
#include "api/protobuf_tables.h"
#include "apps/scheduler/log.h"
#include "apps/scheduler/reaching.h"
#include "bridge/devices.h"
#include "bridge/gpus.h"
#include "engine/invariants.h"
#include "io/system_clock.h"
#include "policy/registry.h"

namespace berth::apps {
namespace {

constexpr int kEvictConnections = 8, kQueueConnections = 16;

Result<SeenPod> decode_seen_pod(std::string_view json, const bridge::SchedulerNames& served,
                                const bridge::TopologyLevels& levels, webhook::UnrequestedGpus unrequested_gpus) {
  BERTH_TRY(pod, api::decode_pod(json));
  SeenPod out;
  out.pod = bridge::to_model(pod, served, levels);
  if (out.pod.ours && out.pod.node_name.empty()) out.problem = bridge::annotation_problem(pod.metadata);
  judge_reach(json, unrequested_gpus, out);
  const api::Condition* scheduled = pod.status.condition("PodScheduled");
  if (scheduled != nullptr && scheduled->status == "False" &&
      (scheduled->reason == "Unschedulable" || scheduled->reason == "SchedulerError"))
    out.told = scheduled->message;
  out.scheduler_name = std::move(pod.spec.scheduler_name);
  out.resource_version = std::move(pod.metadata.resource_version);
  out.gates = std::move(pod.spec.scheduling_gates);
  return out;
}

Result<SeenNode> decode_seen_node(std::string_view json) {
  BERTH_TRY(node, api::decode_node(json));
  SeenNode out{bridge::to_model(node, bridge::DeviceKnowledge::kCounts), mig_of_seen(node), ""};
  out.problem = node_problem(node, out);
  return out;
}

Result<model::DisruptionBudget> decode_model_budget(std::string_view json) {
  BERTH_TRY(object, api::decode_json<api::PodDisruptionBudget>(json));
  return bridge::to_model(object);
}

Result<SeenNamespace> decode_seen_namespace(std::string_view json) {
  BERTH_TRY(object, api::decode_json<api::Namespace>(json));
  return SeenNamespace{bridge::to_event(object), object.metadata.uid, bridge::annotation_problem(object.metadata)};
}

// Cycles tell a time that never jumps, and objects the wall's.
engine::EngineOptions on_clock(engine::EngineOptions options, const Clock& clock) {
  options.wall_offset = options.admission.created_ahead = clock.wall() - clock.monotonic();
  return options;
}

}  // namespace

Session::Session(SessionOptions options)
    : options_(std::move(options)),
      config_(*options_.configuration),
      clock_(io::SystemClock::instance()),
      served_(config_.scheduler_names.begin(), config_.scheduler_names.end()),
      engine_(*policy::make_policy_set(config_.policies), on_clock(config_.engine, clock_)),
      plan_({.longest = config_.turn_max, .work_max = config_.cycle_max_work}) {}

Result<std::unique_ptr<Session>> Session::start(SessionOptions options) {
  std::unique_ptr<Session> session(new Session(std::move(options)));
  BERTH_TRY_VOID(session->open());
  return session;
}

// A transport of its own for each kind of traffic, so that none has to wait for another.
Status Session::open_lanes() {
  const auto lane = [&](int in_flight) {
    io::CurlTransportOptions transport = options_.transport;
    transport.max_in_flight = in_flight;
    return io::CurlTransport::create(std::move(transport));
  };
  BERTH_TRY(watch, lane(32));  // each watch holds one
  BERTH_TRY(bind, lane(config_.client.bind_connections));
  BERTH_TRY(evict, lane(kEvictConnections));
  BERTH_TRY(note, lane(config_.client.note_connections));
  BERTH_TRY(queue, lane(kQueueConnections));
  watch_transport_ = std::move(watch);
  bind_transport_ = std::move(bind);
  evict_transport_ = std::move(evict);
  note_transport_ = std::move(note);
  queue_transport_ = std::move(queue);
  watch_client_ = std::make_unique<kube::Client>(*watch_transport_);
  bind_client_ = std::make_unique<kube::Client>(*bind_transport_);
  evict_client_ = std::make_unique<kube::Client>(*evict_transport_);
  note_client_ = std::make_unique<kube::Client>(*note_transport_);
  queue_client_ = std::make_unique<kube::Client>(*queue_transport_);
  return {};
}

Status Session::open() {
  BERTH_TRY_VOID(open_lanes());
  kube::EventRecorderOptions events;
  events.controller = config_.scheduler_names.front();
  events.instance = options_.instance;
  events.max_in_flight = config_.client.note_connections;
  events.max_queued = kEventsQueuedMax;
  events_ = std::make_unique<kube::EventRecorder>(*note_client_, std::move(events));
  statuses_ = std::make_unique<StatusWriter>(*note_client_, *note_transport_, config_.client.note_connections,
                                             [metrics = options_.metrics](bool ok) { metrics->status_patch(ok); });
  binder_ = std::make_unique<Binder>(
      *bind_client_, *bind_transport_,
      BinderOptions{.timeout = config_.client.bind_timeout, .connections = config_.client.bind_connections},
      options_.may_bind, [this](BindReport report) { inbox_.push(std::move(report)); });
  evictor_ =
      std::make_unique<Evictor>(*evict_client_, *evict_transport_, kEvictConnections, config_.client.bind_timeout,
                                options_.may_bind, [this](EvictionReport report) { inbox_.push(std::move(report)); });
  // Terminal pods hold nothing; failed ones are still watched, since some failed because of where we put them.
  pods_ = std::make_unique<kube::Reflector<SeenPod>>(
      *watch_client_,
      kube::ReflectorOptions{
          .resource = kube::kPods, .field_selector = "status.phase!=Succeeded", .protobuf = &api::kPodProtobuf},
      [served = served_, levels = config_.topology_levels, policy = config_.unrequested_gpus](std::string_view json) {
        return decode_seen_pod(json, served, levels, policy);
      },
      [this](PodUpdates updates) { inbox_.push(std::move(updates)); });
  nodes_ = std::make_unique<kube::Reflector<SeenNode>>(
      *watch_client_, kube::ReflectorOptions{.resource = kube::kNodes, .protobuf = &api::kNodeProtobuf},
      &decode_seen_node, [this](NodeUpdates updates) { inbox_.push(std::move(updates)); });
  namespaces_ = std::make_unique<kube::Reflector<SeenNamespace>>(
      *watch_client_, kube::ReflectorOptions{.resource = kube::kNamespaces}, &decode_seen_namespace,
      [this](NamespaceUpdates updates) { inbox_.push(std::move(updates)); });
  budgets_ = std::make_unique<kube::Reflector<model::DisruptionBudget>>(
      *watch_client_, kube::ReflectorOptions{.resource = kube::kPodDisruptionBudgets}, &decode_model_budget,
      [this](BudgetUpdates updates) { inbox_.push(std::move(updates)); });
  storage_ =
      std::make_unique<StorageWatch>(*watch_client_, [this](StorageUpdates batch) { inbox_.push(std::move(batch)); });
  queues_ = std::make_unique<WorkQueues>(
      WorkQueues::Options{served_, config_.topology_levels, config_.engine.report_interval,
                          config_.engine.admission.pods_ready.enabled},
      *watch_client_, *queue_client_, engine_, set_aside_, *events_, options_.metrics->queues(),
      WorkQueues::Hooks{
          [this](QueueMessage message) { inbox_.push(std::move(message)); }, options_.may_bind,
          [this](const std::string& kind, const kube::Malformed& object) { quarantine(kind.c_str(), object); }});
  volumes_ = std::make_unique<VolumeBinder>(engine_, *bind_client_, config_.volume_bind_timeout,
                                            config_.client.bind_timeout, volume_hooks());
  mig_ = std::make_unique<MigWriter>(
      *bind_client_, config_.client.bind_timeout,
      MigWriter::Hooks{[this](NodePatched answer) { inbox_.push(std::move(answer)); }, options_.may_bind});
  last_tick_ = clock_.monotonic().nanos;
  options_.metrics->session_began();
  nodes_->start();
  storage_->start();
  queues_->start();
  namespaces_->start();
  budgets_->start();
  pods_->start();
  owner_ = std::thread([this] { run(); });
  return {};
}

Session::~Session() { stop(Duration{0}); }

void Session::stop(Duration drain) {
  if (!owner_.joinable()) return;
  deciding_ = false;
  const Time limit = clock_.monotonic() + drain;
  while (binder_->outstanding() + evictor_->under_way() > 0 && clock_.monotonic() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  pods_->stop();
  nodes_->stop();
  namespaces_->stop();
  budgets_->stop();
  storage_->stop();
  queues_->stop();
  bind_transport_->stop();  // ends what is left; their reports still reach the inbox
  evict_transport_->stop();
  queue_transport_->stop();
  stopping_ = true;
  inbox_.push(WakeUp{});
  owner_.join();
  if (drain.nanos > 0) events_->flush(drain);
  note_transport_->stop();
  watch_transport_->stop();
}

std::string Session::trouble() const {
  for (const std::string& error : {pods_->last_error(), nodes_->last_error(), namespaces_->last_error(),
                                   storage_->last_error(), queues_->last_error()})
    if (!error.empty()) return error;
  return budgets_listed_ || !budgets_->refused() ? budgets_->last_error() : "";
}

void Session::carry_out(const engine::Decision& decision) {
  if (decision.kind == engine::DecisionKind::kEvict) return evict(decision);
  if (decision.kind != engine::DecisionKind::kBind) {
    tell_waiting(decision);
    return;
  }
  evictor_->withdraw(decision.pod_uid);
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
  const engine::PodSlot slot = engine_.state().find_pod(decision.pod_uid);
  const engine::DeviceNames devices = slot.valid() ? engine_.state().devices_of(slot) : engine::DeviceNames{};
  if (statuses_->forget(decision.pod_uid, [this, decision, devices] { binder_->bind(decision, devices); }))
    told_.forget(decision.pod_uid);
}

void Session::handle(BindReport& report) {
  const engine::PodSlot slot = engine_.state().find_pod(report.uid);
  options_.metrics->bind(to_string(report.end), report.took);
  if (report.end == BindEnd::kUnknown) {
    log_warn("a bind got no answer; asking the server",
             {{"pod", report.decision.namespace_name + "/" + report.decision.pod_name}, {"error", report.error}});
    return engine_.apply(engine::BindProgress{report.uid, engine::BindOutcome::kUnknown});
  }
  if (report.end == BindEnd::kGone) return forget_pod(report.uid);
  if (report.end == BindEnd::kElsewhere)
    return engine_.apply(engine::PodUpserted{bridge::to_model(*report.seen, served_, config_.topology_levels)});
  if (report.end == BindEnd::kFailed) {
    options_.metrics->outcome("error");
    log_warn("a bind failed; the pod backs off",
             {{"pod", report.decision.namespace_name + "/" + report.decision.pod_name},
              {"node", report.decision.node_name},
              {"error", report.error}});
    if (!report.refusal.empty())
      tell_error(report.decision, "running Bind plugin \"DefaultBinder\": " + report.refusal);
    return engine_.apply(engine::BindProgress{report.uid, engine::BindOutcome::kFailed});
  }
  options_.metrics->outcome("scheduled");
  if (slot.valid()) options_.metrics->pod_scheduled(waited(engine_.state().pod(slot).pod));
  // Also of a pod that has ended or was deleted by now: the watch may be faster than the answer.
  const engine::Decision& decision = report.decision;
  events_->record({.regarding = {.name_space = decision.namespace_name, .name = decision.pod_name, .uid = report.uid},
                   .reason = "Scheduled",
                   .action = "Binding",
                   .note = fmt::format("Successfully assigned {}/{} to {}{}", decision.namespace_name,
                                       decision.pod_name, decision.node_name, bridge::with_gpus_text(report.devices))});
  engine_.apply(engine::BindProgress{report.uid, engine::BindOutcome::kSucceeded});
}

// An annotation that cannot be meant is said once; `told` is what was said of it last.
void Session::take_in(const SeenNamespace& seen, const std::string& told) {
  const std::string& name = seen.event.name;
  if (!seen.problem.empty() && seen.problem != told) {
    log_warn("a namespace's annotation cannot be understood", {{"namespace", name}, {"error", seen.problem}});
    events_->record({.regarding = {.kind = "Namespace", .name = name, .uid = seen.uid},
                     .type = "Warning",
                     .reason = "InvalidAnnotation",
                     .action = "Scheduling",
                     .note = seen.problem});
  }
  namespaces_seen_[name] = seen.problem;
  engine_.apply(seen.event);
}

void Session::handle(NamespaceUpdates& updates) {
  for (auto& update : updates) {
    if (auto* list = std::get_if<kube::ListReplaced<SeenNamespace>>(&update)) {
      set_aside_.clear("Namespace");
      auto gone = std::exchange(namespaces_seen_, {});
      for (const SeenNamespace& each : list->objects) {
        take_in(each, gone[each.event.name]);
        gone.erase(each.event.name);
      }
      for (const auto& [name, told] : gone) engine_.apply(engine::NamespaceUpserted{name, model::Placement::kDefault});
      namespaces_listed_ = true;
    } else if (auto* upserted = std::get_if<kube::Upserted<SeenNamespace>>(&update)) {
      const std::string& name = upserted->object.event.name;
      set_aside_.remove("Namespace", "", name);
      take_in(upserted->object, std::string(namespaces_seen_[name]));
    } else if (auto* deleted = std::get_if<kube::Deleted<SeenNamespace>>(&update)) {
      const std::string& name = deleted->object.event.name;
      set_aside_.remove("Namespace", "", name);
      namespaces_seen_.erase(name);
      engine_.apply(engine::NamespaceUpserted{name, model::Placement::kDefault});
    } else if (auto* malformed = std::get_if<kube::Malformed>(&update)) {
      if (malformed->deleted) set_aside_.remove("Namespace", "", malformed->name);
      else quarantine("Namespace", *malformed);
    }
  }
}

}  // namespace berth::apps
