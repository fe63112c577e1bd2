#include "apps/scheduler/work_queues.h"

#include <algorithm>
#include <optional>

#include "apps/scheduler/log.h"

namespace berth::apps {
namespace {

constexpr size_t kWritesMax = 512;  // on the wire or waiting for it
// Of writes that only tell something, fewer than there are connections: a decision finds one that is free.
constexpr size_t kTellingMax = 12, kTellingBesideDecisions = 1;
constexpr Duration kListedWithin = Duration::seconds(20);
constexpr Duration kCountEvery = Duration::seconds(1);
constexpr Duration kWriteTimeout = Duration::seconds(10);

// The engine's object, of the kinds that it knows.
std::optional<engine::QueueObject> queue_object_of(const api::KueueObject& object) {
  if (const auto* flavor = std::get_if<api::ResourceFlavor>(&object)) return flavor->flavor;
  if (const auto* queue = std::get_if<api::ClusterQueue>(&object)) return queue->queue;
  if (const auto* cohort = std::get_if<api::Cohort>(&object)) return cohort->cohort;
  if (const auto* local = std::get_if<api::LocalQueue>(&object)) return local->queue;
  if (const auto* check = std::get_if<api::AdmissionCheck>(&object)) {
    model::AdmissionCheck out = check->check;
    out.active = check->active.value_or(false);  // on a cluster its controller says so
    return out;
  }
  return std::nullopt;
}

const api::ObjectMeta& metadata_of(const SeenQueueObject& seen) {
  if (const auto* priority = std::get_if<api::PriorityClass>(&seen)) return priority->metadata;
  if (const auto* workload = std::get_if<queueing::SeenWorkload>(&seen)) return workload->workload.metadata;
  if (const auto* job = std::get_if<queueing::SeenJob>(&seen)) return job->job.metadata;
  if (const auto* pod = std::get_if<queueing::SeenPod>(&seen)) return pod->pod.metadata;
  return std::visit([](const auto& object) -> const api::ObjectMeta& { return object.metadata; },
                    std::get<queueing::SeenQueue>(seen).object);
}

// What the engine forgets an object of the kind by.
engine::QueueObject named(QueueKind kind, const std::string& namespace_name, const std::string& name) {
  const auto with_name = [&](auto object) {
    object.name = name;
    return engine::QueueObject(std::move(object));
  };
  if (kind == QueueKind::kResourceFlavor) return with_name(model::ResourceFlavor{});
  if (kind == QueueKind::kAdmissionCheck) return with_name(model::AdmissionCheck{});
  if (kind == QueueKind::kCohort) return with_name(model::Cohort{});
  if (kind == QueueKind::kClusterQueue) return with_name(model::ClusterQueue{});
  model::LocalQueue local;
  local.namespace_name = namespace_name;
  return with_name(std::move(local));
}

// What a write goes to.
QueueKind kind_of(const queueing::Write& write) {
  using Kind = queueing::Write::Kind;
  using Party = queueing::Write::Party;
  if (write.kind == Kind::kPatchJob || write.kind == Kind::kPatchJobStatus) return QueueKind::kJob;
  if (write.kind == Kind::kPatchPod || write.kind == Kind::kDeletePod) return QueueKind::kPod;
  if (write.party == Party::kClusterQueue) return QueueKind::kClusterQueue;
  if (write.party == Party::kCohort) return QueueKind::kCohort;
  return write.party == Party::kLocalQueue ? QueueKind::kLocalQueue : QueueKind::kWorkload;
}

bool is_queue(QueueKind kind) {
  return kind == QueueKind::kClusterQueue || kind == QueueKind::kCohort || kind == QueueKind::kLocalQueue;
}

}  // namespace

WorkQueues::WorkQueues(Options options, kube::Client& watch, kube::Client& write, engine::Engine& engine,
                       SetAside& set_aside, kube::EventRecorder& events, QueueMetrics& metrics, Hooks hooks)
    : options_(std::move(options)),
      client_(write),
      engine_(engine),
      set_aside_(set_aside),
      events_(events),
      metrics_(metrics),
      hooks_(std::move(hooks)),
      watch_(watch, [post = hooks_.post](QueueUpdates updates) { post(std::move(updates)); }),
      desk_(options_.served, options_.levels, options_.pods_ready) {}

bool WorkQueues::listed() {
  for (size_t i = 0; i < kQueueKinds && known_.size() < kQueueKinds; ++i) {
    const auto kind = static_cast<QueueKind>(i);
    if (known_.contains(kind)) continue;
    if (!watch_.refused(kind)) return false;
    known_[kind];
    log_info("not there, or not to be read: deploy/crds and deploy/rbac.yaml have what queues need",
             {{"resource", std::string(resource_of(kind).plural)}});
  }
  return true;
}

bool WorkQueues::overdue(Time now) {
  if (!waits_since_) waits_since_ = now;
  if (now - *waits_since_ < kListedWithin) return false;
  if (!std::exchange(told_overdue_, true))
    log_warn("queues cannot be read; what names none is scheduled meanwhile, and nothing is admitted",
             {{"error", watch_.last_error()}});
  return true;
}

void WorkQueues::take_in(QueueKind kind, SeenQueueObject&& seen) {
  const api::ObjectMeta& metadata = metadata_of(seen);
  known_[kind].insert({metadata.namespace_name, metadata.name});
  if (auto* workload = std::get_if<queueing::SeenWorkload>(&seen)) return desk_.see(std::move(*workload));
  if (auto* job = std::get_if<queueing::SeenJob>(&seen)) return desk_.see(std::move(*job));
  if (auto* pod = std::get_if<queueing::SeenPod>(&seen)) return desk_.see(std::move(*pod));
  if (const auto* priority = std::get_if<api::PriorityClass>(&seen))
    return desk_.see_pod_priority(metadata.name, priority->value);
  statuses_.see(std::get<queueing::SeenQueue>(seen));
  const auto& object = std::get<queueing::SeenQueue>(seen).object;
  if (const auto* priority = std::get_if<api::WorkloadPriorityClass>(&object))
    return desk_.see_priority(metadata.name, priority->value);
  if (auto known = queue_object_of(object)) engine_.apply(engine::QueueObjectUpserted{std::move(*known)});
}

void WorkQueues::forget(QueueKind kind, const Name& name) {
  known_[kind].erase(name);
  if (kind == QueueKind::kWorkload) return desk_.workload_gone(name.first, name.second);
  if (kind == QueueKind::kJob) return desk_.job_gone(name.first, name.second);
  if (kind == QueueKind::kPod) return desk_.pod_gone(name.first, name.second);
  if (kind == QueueKind::kPriorityClass) return desk_.see_pod_priority(name.second, std::nullopt);
  if (kind == QueueKind::kWorkloadPriorityClass) return desk_.see_priority(name.second, std::nullopt);
  statuses_.gone(std::string(resource_of(kind).kind), name.first, name.second);
  engine_.apply(engine::QueueObjectDeleted{named(kind, name.first, name.second)});
}

bool WorkQueues::handle(QueueMessage& message, Time now) {
  if (auto* batch = std::get_if<QueueUpdates>(&message)) return handle(*batch);
  handle(std::get<queueing::Answer>(message), now);
  return false;
}

bool WorkQueues::handle(QueueUpdates& batch) {
  const std::string kind(resource_of(batch.kind).kind);
  const bool is_set_aside = batch.kind != QueueKind::kPod;  // the session's own watch sees to pods
  bool went_back = false;
  for (auto& update : batch.updates) {
    if (auto* list = std::get_if<kube::ListReplaced<SeenQueueObject>>(&update)) {
      went_back |= list->went_back;
      if (is_set_aside) set_aside_.clear(kind);
      std::set<Name> gone = std::exchange(known_[batch.kind], {});
      for (SeenQueueObject& seen : list->objects) {
        gone.erase({metadata_of(seen).namespace_name, metadata_of(seen).name});
        take_in(batch.kind, std::move(seen));
      }
      for (const auto& each : batch.updates)  // what cannot be read is there nevertheless
        if (const auto* malformed = std::get_if<kube::Malformed>(&each))
          gone.erase({malformed->name_space, malformed->name});
      for (const Name& name : gone) forget(batch.kind, name);
    } else if (auto* upserted = std::get_if<kube::Upserted<SeenQueueObject>>(&update)) {
      const api::ObjectMeta& metadata = metadata_of(upserted->object);
      if (is_set_aside) set_aside_.remove(kind, metadata.namespace_name, metadata.name);
      take_in(batch.kind, std::move(upserted->object));
    } else if (auto* deleted = std::get_if<kube::Deleted<SeenQueueObject>>(&update)) {
      const api::ObjectMeta& metadata = metadata_of(deleted->object);
      if (is_set_aside) set_aside_.remove(kind, metadata.namespace_name, metadata.name);
      forget(batch.kind, {metadata.namespace_name, metadata.name});
    } else if (auto* malformed = std::get_if<kube::Malformed>(&update)) {
      // What was known of it goes on counting: an object that cannot be read is no reason to stop what runs.
      if (malformed->deleted) forget(batch.kind, {malformed->name_space, malformed->name});
      else if (is_set_aside) hooks_.quarantine(kind, *malformed);
    }
  }
  return went_back;
}

bool WorkQueues::tell_engine(Time now, Time wall) {
  std::vector<engine::Event> events = desk_.take_events(now, wall);
  for (engine::Event& event : events) engine_.apply(std::move(event));
  return !events.empty();
}

void WorkQueues::write(Time now, Time wall) {
  const size_t room = kWritesMax - std::min(kWritesMax, under_way_);
  const size_t tell_max = decisions_under_way() ? kTellingBesideDecisions : kTellingMax;
  const size_t tell_room = tell_max - std::min(tell_max, telling_);
  for (queueing::Write& write : desk_.look(engine_.admission(), now, wall, options_.told_every, room, tell_room))
    send(std::move(write));
  tell(desk_.take_notes());
  if (counted_at_ && now - *counted_at_ < kCountEvery) return;
  counted_at_ = now;
  const quota::QueueOverview overview = engine_.admission().overview();
  metrics_.show(engine_.admission(), overview, now);
  const size_t left = kWritesMax - std::min(kWritesMax, under_way_);
  for (queueing::Write& write : statuses_.look(engine_.admission(), overview, now, wall, left)) send(std::move(write));
}

void WorkQueues::decided(const std::vector<quota::AdmissionDecision>& decisions, Time wall) {
  desk_.decided(decisions, engine_.admission());
  metrics_.decided(decisions, engine_.admission(), wall);
}

void WorkQueues::tell(const std::vector<queueing::Note>& notes) {
  for (const queueing::Note& note : notes)
    events_.record({.regarding = {.api_version = note.kind == "Job"   ? "batch/v1"
                                                 : note.kind == "Pod" ? "v1"
                                                                      : "kueue.x-k8s.io/v1beta2",
                                  .kind = note.kind,
                                  .name_space = note.namespace_name,
                                  .name = note.name,
                                  .uid = note.uid},
                    .type = note.warning ? "Warning" : "Normal",
                    .reason = note.reason,
                    .action = "Queueing",
                    .note = note.text});
}

void WorkQueues::send(queueing::Write&& write) {
  ++under_way_;
  telling_ += write.only_tells ? 1 : 0;
  using Kind = queueing::Write::Kind;
  const QueueKind kind = kind_of(write);
  const kube::Resource& resource = resource_of(kind);
  const kube::CallOptions call{.timeout = kWriteTimeout, .may_start = hooks_.may_send};
  std::string body = std::exchange(write.body, {});  // the answer has no use for it
  const auto answered = [post = hooks_.post, kind, sent = write](const Result<std::string>& result) {
    queueing::Answer answer{.write = sent, .stored = result.has_value()};
    if (!result) {
      answer.http_status = result.error().http_status;
      answer.error = result.error().message;
      answer.wait = kube::retry_after(result.error());
    } else if (kind == QueueKind::kJob) {
      if (auto job = queueing::decode_job(*result)) answer.job = std::move(*job);
    } else if (kind == QueueKind::kPod) {  // the answer to a deletion may be a Status
      if (auto pod = queueing::decode_pod(*result); pod && !pod->pod.metadata.uid.empty()) answer.pod = std::move(*pod);
    } else if (is_queue(kind)) {
      if (auto queue = queueing::decode_queue_object(*result, resource_of(kind).kind)) answer.queue = std::move(*queue);
    } else if (auto workload = queueing::decode_workload(*result)) {
      answer.workload = std::move(*workload);
    }
    post(std::move(answer));
  };
  log_debug("writing for a queue",
            {{"object", write.namespace_name + "/" + write.name}, {"body", body.substr(0, 400)}});
  if (write.kind == Kind::kCreateWorkload)
    return client_.create(resource.collection(write.namespace_name), std::move(body), answered, call);
  if (write.kind == Kind::kDeletePod)
    return client_.remove(resource.object(write.namespace_name, write.name), std::move(body), answered, call);
  const bool of_status = write.kind == Kind::kPatchStatus || write.kind == Kind::kPatchJobStatus;
  client_.patch(resource.object(write.namespace_name, write.name, of_status ? "status" : ""), kube::PatchType::kMerge,
                std::move(body), answered, call);
}

void WorkQueues::handle(const queueing::Answer& answer, Time now) {
  --under_way_;
  telling_ -= answer.write.only_tells ? 1 : 0;
  const queueing::Write& write = answer.write;
  if (answer.stored) tell(write.notes);
  const bool expected = answer.http_status == 404 || answer.http_status == 409;
  if (!answer.stored && !expected)
    log_warn("a write for a queue failed; it is tried again",
             {{"object", write.namespace_name + "/" + write.name}, {"error", answer.error}});
  if (is_queue(kind_of(write))) statuses_.answered(answer, now);
  else desk_.answered(answer, now);
}

}  // namespace berth::apps
