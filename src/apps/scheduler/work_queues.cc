#include "apps/scheduler/work_queues.h"

#include <algorithm>
#include <optional>

#include "apps/scheduler/log.h"
#include "engine/queued_workloads.h"
#include "queueing/held.h"
#include "workloads/kueue/queued.h"

namespace berth::apps {
namespace {

constexpr size_t kWritesMax = 512;  // on the wire or waiting for it
// Of writes that only tell something, fewer than there are connections: a decision finds one that is free.
constexpr size_t kTellingMax = 12, kTellingBesideDecisions = 1;
constexpr Duration kListedWithin = Duration::seconds(20);
constexpr Duration kCountEvery = Duration::seconds(1);
constexpr Duration kWriteTimeout = Duration::seconds(10);
constexpr kube::Resource kPodTemplates{"", "v1", "podtemplates", "PodTemplate"};

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
  if (const auto* range = std::get_if<api::LimitRange>(&seen)) return range->metadata;
  if (const auto* runtime = std::get_if<api::RuntimeClass>(&seen)) return runtime->metadata;
  if (const auto* workload = std::get_if<queueing::SeenWorkload>(&seen)) return workload->workload.metadata;
  if (const auto* job = std::get_if<queueing::SeenJob>(&seen)) return job->job.metadata;
  if (const auto* pod = std::get_if<queueing::SeenPod>(&seen)) return pod->pod.metadata;
  if (const auto* config = std::get_if<queueing::ProvisioningConfig>(&seen)) return config->metadata;
  if (const auto* request = std::get_if<queueing::ProvisioningRequest>(&seen)) return request->metadata;
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
  if (write.kind == Kind::kPatchPod || write.kind == Kind::kPatchPodStatus || write.kind == Kind::kDeletePod)
    return QueueKind::kPod;
  if (write.party == Party::kProvisioning) return QueueKind::kProvisioningRequest;
  if (write.party == Party::kAdmissionCheck) return QueueKind::kAdmissionCheck;
  if (write.party == Party::kClusterQueue) return QueueKind::kClusterQueue;
  if (write.party == Party::kCohort) return QueueKind::kCohort;
  return write.party == Party::kLocalQueue ? QueueKind::kLocalQueue : QueueKind::kWorkload;
}

bool is_queue(QueueKind kind) {
  return kind == QueueKind::kClusterQueue || kind == QueueKind::kCohort || kind == QueueKind::kLocalQueue;
}

// What the server says that it has stored. The answer to a deletion may be a Status.
void read(QueueKind kind, const std::string& body, queueing::Answer& answer) {
  if (kind == QueueKind::kJob) {
    if (auto job = queueing::decode_job(body)) answer.job = std::move(*job);
  } else if (kind == QueueKind::kPod) {
    if (auto pod = queueing::decode_pod(body); pod && !pod->pod.metadata.uid.empty()) answer.pod = std::move(*pod);
  } else if (kind == QueueKind::kProvisioningRequest) {
    if (answer.write.kind != queueing::Write::Kind::kCreateRequest) return;
    if (auto request = queueing::decode_provisioning_request(body)) answer.request = std::move(*request);
  } else if (is_queue(kind) || kind == QueueKind::kAdmissionCheck) {
    if (auto queue = queueing::decode_queue_object(body, resource_of(kind).kind)) answer.queue = std::move(*queue);
  } else if (auto workload = queueing::decode_any_workload(body)) {
    answer.workload = std::move(*workload);
  }
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
    log_info(kind == QueueKind::kProvisioningRequest
                 ? "not there, or not to be read: no autoscaler is asked for nodes"
                 : "not there, or not to be read: deploy/crds and deploy/rbac.yaml have what queues need",
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

void WorkQueues::take_in(QueueKind kind, SeenQueueObject&& seen, Time wall) {
  const api::ObjectMeta& metadata = metadata_of(seen);
  known_[kind].insert({metadata.namespace_name, metadata.name});
  if (auto* workload = std::get_if<queueing::SeenWorkload>(&seen)) return desk_.see(std::move(*workload));
  if (auto* job = std::get_if<queueing::SeenJob>(&seen)) return see_job(std::move(*job));
  if (auto* pod = std::get_if<queueing::SeenPod>(&seen)) return desk_.see(std::move(*pod));
  if (const auto* priority = std::get_if<api::PriorityClass>(&seen))
    return desk_.see_pod_priority(metadata.name, priority->value);
  if (auto* range = std::get_if<api::LimitRange>(&seen)) return desk_.see(std::move(*range));
  if (const auto* runtime = std::get_if<api::RuntimeClass>(&seen)) return desk_.see(*runtime);
  if (auto* config = std::get_if<queueing::ProvisioningConfig>(&seen)) return provisioning_.see(std::move(*config));
  if (auto* request = std::get_if<queueing::ProvisioningRequest>(&seen)) return provisioning_.see(std::move(*request));
  auto& queue = std::get<queueing::SeenQueue>(seen);
  const std::optional<model::Spent> spent = queueing::spent_by_now(queue, wall);
  if (auto* cluster_queue = std::get_if<api::ClusterQueue>(&queue.object)) cluster_queue->queue.spent = spent;
  if (auto* local = std::get_if<api::LocalQueue>(&queue.object)) local->queue.spent = spent;
  statuses_.see(queue);
  provisioning_.see(queue);
  if (const auto* priority = std::get_if<api::WorkloadPriorityClass>(&queue.object))
    return desk_.see_priority(metadata.name, priority->value);
  tell_problem(queue);
  if (const auto* local = std::get_if<api::LocalQueue>(&queue.object))
    return see_local_queue(local->queue, queue.problem);
  if (auto known = queue_object_of(queue.object)) engine_.apply(engine::QueueObjectUpserted{std::move(*known)});
}

void WorkQueues::see_job(queueing::SeenJob&& seen) {
  const api::ObjectMeta& metadata = seen.job.metadata;
  jobs_in_sight_.see({metadata.namespace_name, metadata.name}, metadata.uid);
  if (workloads::queue_of(metadata).empty()) desk_.job_gone(metadata.namespace_name, metadata.name);
  else desk_.see(std::move(seen));
}

bool WorkQueues::awaits_job(const std::string& uid, bool is_new, Time now) {
  if (!known_.contains(QueueKind::kJob) || watch_.refused(QueueKind::kJob) || watch_.refused(QueueKind::kWorkload))
    return false;
  return jobs_in_sight_.awaits(uid, is_new, now);
}

// One whose limits cannot be read is on hold, and what was known of its budget counts on.
void WorkQueues::see_local_queue(model::LocalQueue queue, const std::string& problem) {
  if (!problem.empty()) {
    if (queue.stop == model::StopPolicy::kNone) queue.stop = model::StopPolicy::kHold;
    const auto& all = engine_.admission().local_queues();
    const auto known = all.find(std::pair(queue.namespace_name, queue.name));
    if (known != all.end()) queue.budget = known->second.budget;
  }
  engine_.apply(engine::QueueObjectUpserted{std::move(queue)});
}

// Of one that was set aside: once, while it stays so.
void WorkQueues::tell_problem(const queueing::SeenQueue& seen) {
  const bool local = std::holds_alternative<api::LocalQueue>(seen.object);
  const std::string kind = local ? "LocalQueue" : "ClusterQueue";
  const api::ObjectMeta& metadata =
      std::visit([](const auto& object) -> const api::ObjectMeta& { return object.metadata; }, seen.object);
  const std::pair key(kind, Name{metadata.namespace_name, metadata.name});
  if (seen.problem.empty()) {
    if (local || std::holds_alternative<api::ClusterQueue>(seen.object)) told_problems_.erase(key);
    return;
  }
  const std::string text = seen.problem + "; until then it lets nobody in";
  if (std::exchange(told_problems_[key], text) != text)
    hooks_.quarantine(kind, {.name_space = metadata.namespace_name,
                             .name = metadata.name,
                             .uid = metadata.uid,
                             .error = {ErrorCode::kInvalidInput, text}});
  else set_aside_.add(kind, local ? metadata.namespace_name + "/" + metadata.name : metadata.name, text);
}

void WorkQueues::forget(QueueKind kind, const Name& name) {
  known_[kind].erase(name);
  if (kind == QueueKind::kWorkload) return desk_.workload_gone(name.first, name.second);
  if (kind == QueueKind::kJob) return jobs_in_sight_.gone(name), desk_.job_gone(name.first, name.second);
  if (kind == QueueKind::kPod) return desk_.pod_gone(name.first, name.second);
  if (kind == QueueKind::kPriorityClass) return desk_.see_pod_priority(name.second, std::nullopt);
  if (kind == QueueKind::kWorkloadPriorityClass) return desk_.see_priority(name.second, std::nullopt);
  if (kind == QueueKind::kLimitRange) return desk_.limit_range_gone(name.first, name.second);
  if (kind == QueueKind::kRuntimeClass) return desk_.runtime_class_gone(name.second);
  if (kind == QueueKind::kProvisioningRequestConfig) return provisioning_.config_gone(name.second);
  if (kind == QueueKind::kProvisioningRequest) return provisioning_.request_gone(name);
  if (kind == QueueKind::kAdmissionCheck) provisioning_.check_gone(name.second);
  const std::string kind_name(resource_of(kind).kind);
  told_problems_.erase({kind_name, name});
  statuses_.gone(kind_name, name.first, name.second);
  engine_.apply(engine::QueueObjectDeleted{named(kind, name.first, name.second)});
}

bool WorkQueues::handle(QueueMessage& message, const Clock& clock) {
  if (auto* batch = std::get_if<QueueUpdates>(&message)) return handle(*batch, clock.wall());
  handle(std::get<queueing::Answer>(message), clock.monotonic());
  return false;
}

bool WorkQueues::handle(QueueUpdates& batch, Time wall) {
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
        take_in(batch.kind, std::move(seen), wall);
      }
      for (const auto& each : batch.updates)  // what cannot be read is there nevertheless
        if (const auto* malformed = std::get_if<kube::Malformed>(&each))
          gone.erase({malformed->name_space, malformed->name});
      for (const Name& name : gone) forget(batch.kind, name);
    } else if (auto* upserted = std::get_if<kube::Upserted<SeenQueueObject>>(&update)) {
      const api::ObjectMeta& metadata = metadata_of(upserted->object);
      if (is_set_aside) set_aside_.remove(kind, metadata.namespace_name, metadata.name);
      take_in(batch.kind, std::move(upserted->object), wall);
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
  const std::vector<std::string> owners = jobs_in_sight_.take_settled(now);
  for (const std::string& uid : owners) engine_.apply(desk_.owner(uid));
  if (!listed() || watch_.refused(QueueKind::kWorkload)) return !owners.empty();  // nothing can wait, nor be told so
  std::vector<engine::Event> events = desk_.take_events(now, wall);
  for (engine::Event& event : events) engine_.apply(std::move(event));
  return !owners.empty() || !events.empty();
}

void WorkQueues::write(Time now, Time wall) {
  const auto left = [&] { return kWritesMax - std::min(kWritesMax, under_way_); };
  const bool served = !watch_.refused(QueueKind::kProvisioningRequest);
  const auto is_let_in = [&](const std::string& uid) {
    const engine::PodSlot slot = engine_.state().find_pod(uid);
    return slot.valid() && engine_.workloads().admits(engine_.state().pod(slot).pod.workload);
  };
  for (queueing::Write& write : topology_gates_.look(is_let_in, now, left())) send(std::move(write));
  for (queueing::Write& write : provisioning_.look(desk_, engine_.admission().flavors(), served, now, wall, left()))
    send(std::move(write));
  if (watch_.refused(QueueKind::kWorkload)) return;
  const size_t tell_max = decisions_under_way() ? kTellingBesideDecisions : kTellingMax;
  const size_t tell_room = tell_max - std::min(tell_max, telling_);
  for (queueing::Write& write : desk_.look(engine_.admission(), now, wall, options_.told_every, left(), tell_room))
    send(std::move(write));
  tell(desk_.take_notes());
  if (counted_at_ && now - *counted_at_ < kCountEvery) return;
  counted_at_ = now;
  const quota::QueueOverview overview = engine_.admission().overview();
  metrics_.show(engine_.admission(), overview, now);
  for (queueing::Write& write : statuses_.look(engine_.admission(), overview, now, wall, left()))
    send(std::move(write));
}

void WorkQueues::decided(const std::vector<quota::AdmissionDecision>& decisions, Time wall) {
  desk_.decided(decisions, engine_.admission());
  metrics_.decided(decisions, engine_.admission(), [&](const quota::AdmissionDecision& decision) {
    const model::Workload& workload = engine_.admission().status(decision.workload).workload;
    const queueing::SeenWorkload* seen = desk_.find({workload.namespace_name, workload.name});
    if (seen == nullptr) return QueueMetrics::Waited{wall - workload.created, {}};
    return QueueMetrics::Waited{wall - queueing::queued_since(*seen, wall),
                                wall - queueing::reserved_since(*seen, wall)};
  });
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
  const QueueKind kind = kind_of(write);
  std::string body = std::exchange(write.body, {});  // the answer has no use for it
  auto answered = [post = hooks_.post, kind, sent = write](const Result<std::string>& result) {
    queueing::Answer answer{.write = sent, .stored = result.has_value()};
    if (result) {
      read(kind, *result, answer);
    } else {
      answer.http_status = result.error().http_status;
      answer.error = result.error().message;
      answer.wait = kube::retry_after(result.error());
    }
    post(std::move(answer));
  };
  log_debug("writing for a queue",
            {{"object", write.namespace_name + "/" + write.name}, {"body", body.substr(0, 400)}});
  write.body = std::move(body);
  call(kind, std::move(write), std::move(answered));
}

void WorkQueues::call(QueueKind kind, queueing::Write&& write, kube::Client::Done answered) {
  using Kind = queueing::Write::Kind;
  const bool of_template = write.kind == Kind::kCreateTemplate || write.kind == Kind::kDeleteTemplate;
  const kube::Resource& resource = of_template ? kPodTemplates : resource_of(kind);
  const bool by_name = write.object.empty() || write.party == queueing::Write::Party::kGate;
  const std::string& name = by_name ? write.name : write.object;
  const kube::CallOptions call{.timeout = kWriteTimeout, .may_start = hooks_.may_send};
  const bool of_pod = write.kind == Kind::kPatchPodStatus;
  const bool of_status = write.kind == Kind::kPatchStatus || write.kind == Kind::kPatchJobStatus || of_pod;
  switch (write.kind) {
    case Kind::kCreateWorkload:
    case Kind::kCreateTemplate:
    case Kind::kCreateRequest:
      return client_.create(resource.collection(write.namespace_name), std::move(write.body), std::move(answered),
                            call);
    case Kind::kDeletePod:
    case Kind::kDeleteTemplate:
    case Kind::kDeleteRequest:
      return client_.remove(resource.object(write.namespace_name, name), std::move(write.body), std::move(answered),
                            call);
    default: break;
  }
  client_.patch(resource.object(write.namespace_name, name, of_status ? "status" : ""),
                of_pod ? kube::PatchType::kStrategic : kube::PatchType::kMerge, std::move(write.body),
                std::move(answered), call);
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
  if (write.party == queueing::Write::Party::kProvisioning || write.party == queueing::Write::Party::kAdmissionCheck)
    provisioning_.answered(answer, now);
  else if (write.party == queueing::Write::Party::kGate) topology_gates_.answered(answer, now);
  else if (is_queue(kind_of(write))) statuses_.answered(answer, now);
  else desk_.answered(answer, now);
}

}  // namespace berth::apps
