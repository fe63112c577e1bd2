// The part of Desk that keeps a Workload what its owner is: whoever edits one that waits by hand gains nothing by it.
#include <fmt/format.h>

#include <algorithm>

#include "api/kueue_names.h"
#include "queueing/step.h"
#include "queueing/write_json.h"
#include "workloads/kueue/pod_group.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

// What is stored is what is wanted, in every set and in its order.
bool same_sets(const SeenWorkload& seen, const std::vector<api::WorkloadPodSet>& sets,
               const std::vector<std::string>& templates) {
  const std::vector<api::WorkloadPodSet>& stored = seen.workload.pod_sets;
  if (stored.size() != sets.size()) return false;
  for (size_t i = 0; i < sets.size(); ++i) {
    if (stored[i].name != sets[i].name || stored[i].count != sets[i].count || stored[i].min_count != sets[i].min_count)
      return false;
    if (nlohmann::json::parse(seen.templates[i]) != nlohmann::json::parse(templates[i])) return false;
  }
  return true;
}

}  // namespace

// What the Job or the pods that the Workload stands for ask for; nothing while that is not to be read from them: they
// are not known, have been let in, or have not left yet.
std::optional<Owned> Desk::owned(const SeenWorkload& seen) const {
  if (seen.is("QuotaReserved")) return std::nullopt;
  if (const JobRecord* record = job_of(seen)) {
    const SeenJob& job = record->seen;
    if (!job.finished.empty() || !is_at_rest(job)) return std::nullopt;
    Owned out{workloads::workload_of(job.job).pod_sets, {}};
    out.templates = {
        defaults_.complete(job.job.metadata.namespace_name, out.sets.front().pod_template.spec, job.pod_template)};
    if (seen.workload.pod_sets.size() == 1) out.sets.front().name = seen.workload.pod_sets.front().name;
    return out;
  }
  const GroupRecord* group = group_of(seen);
  if (group == nullptr) return std::nullopt;
  std::vector<const api::Pod*> pods;
  std::vector<const std::string*> templates;  // with what pods are given: they are there
  for (const auto& [name, pod] : group->pods) {
    if (pod.seen.pod.terminal() || pod.seen.pod.metadata.deleted) continue;
    if (!workloads::waits_for_admission(pod.seen.pod)) return std::nullopt;
    pods.push_back(&pod.seen.pod);
    templates.push_back(&pod.seen.pod_template);
  }
  if (pods.empty()) return std::nullopt;
  workloads::ComposedGroup made = workloads::compose_group(pods);
  if (!made.workload) return std::nullopt;
  Owned out{std::move(made.workload->pod_sets), {}};
  for (const size_t example : made.examples) out.templates.push_back(*templates[example]);
  return out;
}

// The queue and the priority class that the owner's labels name; nothing where it is not known, names no queue, or is a
// group whose pods do not agree on it. A class that is not there changes nothing.
std::optional<Named> Desk::named_by_owner(const SeenWorkload& seen) const {
  const api::ObjectMeta* metadata = nullptr;
  const api::PodSpec* spec = nullptr;
  if (const JobRecord* job = job_of(seen)) {
    metadata = &job->seen.job.metadata;
    spec = &job->seen.job.pod_template.spec;
  } else if (const GroupRecord* group = group_of(seen)) {
    for (const auto& [name, pod] : group->pods) {
      const api::Pod& one = pod.seen.pod;
      if (one.terminal() || one.metadata.deleted) continue;
      if (metadata != nullptr && workloads::queue_of(one.metadata) != workloads::queue_of(*metadata))
        return std::nullopt;
      if (metadata == nullptr) spec = &one.spec;
      if (metadata == nullptr) metadata = &one.metadata;
    }
  }
  if (metadata == nullptr || workloads::queue_of(*metadata).empty()) return std::nullopt;
  api::Workload made;
  made.priority = spec->priority.value_or(0);
  std::optional<std::string> priority_class;
  if (!set_priority(*metadata, *spec, made, priority_class)) {
    priority_class = seen.priority_class;
    made.priority = seen.workload.priority;
  }
  return Named{std::string(workloads::queue_of(*metadata)), priority_class.value_or(""), made.priority};
}

namespace {

Json sets_json(const std::vector<api::WorkloadPodSet>& sets, const std::vector<std::string>& templates) {
  Json out = Json::array();
  for (size_t i = 0; i < sets.size(); ++i) {
    Json& one = out.emplace_back(Json{{"name", sets[i].name}, {"count", sets[i].count}});
    if (sets[i].min_count) one["minCount"] = *sets[i].min_count;
    one["template"] = Json::parse(templates[i]);
  }
  return out;
}

}  // namespace

// Writes what of one that waits is not as its owner is: pod sets, queue and priority class. One with quota keeps the
// first two, and a class only gives way to another. True: it has to be looked at again then.
bool Desk::follow(const Name& name, WorkloadRecord& record, std::vector<Write>& writes) {
  const SeenWorkload& seen = record.seen;
  const JobRecord* job = job_of(seen);
  const std::optional<Named> named = named_by_owner(seen);
  std::string of_owner = named ? named->queue + "/" + named->priority_class : "";
  if (const GroupRecord* group = job == nullptr ? group_of(seen) : nullptr; group != nullptr)
    for (const auto& [pod_name, pod] : group->pods)
      if (!pod.seen.pod.terminal() && !pod.seen.pod.metadata.deleted) of_owner += "/" + pod.seen.pod.metadata.uid;
  std::tuple versions(job == nullptr ? 0 : job->seen.job.metadata.generation, seen.workload.metadata.generation,
                      std::move(of_owner));
  if (record.followed == versions) return false;
  const bool reserved = seen.is("QuotaReserved");
  const std::optional<Owned> owner = owned(seen);
  Json spec = Json::object(), metadata = metadata_json(seen.workload.metadata);
  if (owner && !same_sets(seen, owner->sets, owner->templates))
    spec["podSets"] = sets_json(owner->sets, owner->templates);
  if (named && !reserved && named->queue != seen.workload.queue_name) spec["queueName"] = named->queue;
  const bool other_class = named && named->priority_class != seen.priority_class;
  if (other_class && (!reserved || (!named->priority_class.empty() && !seen.priority_class.empty()))) {
    const bool none = named->priority_class.empty();
    spec["priority"] = named->priority;
    spec["priorityClassRef"] = none ? Json() : Json::parse(priority_class_json(named->priority_class));
    metadata["labels"][std::string(api::kPriorityClassLabel)] = none ? Json() : Json(named->priority_class);
  }
  if (spec.empty()) {
    if (owner) record.followed = std::move(versions);
    if (owner && std::exchange(record.recount, false)) tell_engine(record);  // LimitRanges may refuse it, or no more
    return false;
  }
  const bool reshapes = spec.contains("podSets");
  const std::string kind = job != nullptr ? "Job" : "pods";
  Write write{.kind = Write::Kind::kPatchWorkload,
              .party = Write::Party::kWorkload,
              .namespace_name = name.first,
              .name = name.second,
              .body = Json{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}}.dump()};
  write.notes = {note_of(job != nullptr ? job->seen.job.metadata : seen.workload.metadata,
                         job != nullptr ? "Job" : "Workload", "UpdatedWorkload",
                         fmt::format("Updated Workload to match the {}: {}/{}", kind, name.first, name.second))};
  if (send(record.lane, std::move(write), writes)) {
    record.followed = std::move(versions);  // once, whatever the server keeps of it
    record.reshaped |= reshapes;
  } else if (!record.lane.busy) dirty_workloads_.insert(name);
  return true;
}

void Desk::see(api::LimitRange range) {
  const std::string space = range.metadata.namespace_name;
  if (defaults_.see(std::move(range))) recount(space);
}

void Desk::see(const api::RuntimeClass& runtime_class) {
  if (defaults_.see(runtime_class)) recount("");
}

void Desk::limit_range_gone(const std::string& namespace_name, const std::string& name) {
  defaults_.range_gone(namespace_name, name);
  recount(namespace_name);
}

void Desk::runtime_class_gone(const std::string& name) {
  defaults_.class_gone(name);
  recount("");
}

// Has those that stand for Jobs looked at again, of one namespace or, where it is empty, of all.
void Desk::recount(const std::string& namespace_name) {
  auto at = namespace_name.empty() ? workloads_.begin() : workloads_.lower_bound({namespace_name, ""});
  for (; at != workloads_.end() && (namespace_name.empty() || at->first.first == namespace_name); ++at) {
    if (job_of(at->second.seen) == nullptr) continue;
    at->second.followed = {-1, -1, ""};
    at->second.recount = true;
    dirty_workloads_.insert(at->first);
  }
}

}  // namespace berth::queueing
