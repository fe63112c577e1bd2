// The part of Desk that makes Workloads for plain pods and their groups, lets their pods be scheduled, and stops them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/kueue_names.h"
#include "api/patch.h"
#include "queueing/step.h"
#include "queueing/write_json.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

// Was let in: it may be scheduled, or is there already.
bool has_started(const SeenPod& seen, const std::string& workload) {
  if (workloads::waits_for_admission(seen.pod)) return false;
  const std::string *told = seen.pod.metadata.annotation(api::kWorkloadAnnotation),
                    *managed = seen.pod.metadata.labels.find(api::kManagedLabel);
  return (told != nullptr && *told == workload) || (managed != nullptr && *managed == "true");
}

// What one of the pods says of how it is queued, and cannot be meant so; empty: nothing, or some have started.
std::string why_not_queued(const std::vector<const SeenPod*>& pods, const std::string& workload) {
  if (std::ranges::any_of(pods, [&](const SeenPod* pod) { return has_started(*pod, workload); })) return "";
  for (const SeenPod* pod : pods)
    if (const auto problems = workloads::queued_problems(pod->pod.metadata, nullptr); !problems.empty())
      return fmt::format("pod {}: {}{}", pod->pod.metadata.name, to_string(problems.front()), kNotAdmittedUntil);
  return "";
}

Write write_of(const SeenPod& seen, Write::Kind kind, const Json& body) {
  return {.kind = kind,
          .party = Write::Party::kPod,
          .namespace_name = seen.pod.metadata.namespace_name,
          .name = seen.pod.metadata.name,
          .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

// Takes the gate away, with what its flavors add.
Write start(const SeenPod& seen, const SeenWorkload& workload, const quota::PodSetAssignment& given,
            const quota::FlavorTerms& terms) {
  Json patch = pod_additions(workload, given, terms, Json::parse(seen.tolerations)), gates = Json::array();
  patch["metadata"].update(metadata_json(seen.pod.metadata));
  for (const Json& gate : Json::parse(seen.gates))
    if (const std::string name = gate.value("name", ""); name != api::kAdmissionGate && name != api::kTopologyGate)
      gates.push_back(gate);
  patch["spec"]["schedulingGates"] = std::move(gates);
  Write write = write_of(seen, Write::Kind::kPatchPod, patch);
  write.notes = {
      note_of(seen.pod.metadata, "Pod", "Started", "Admitted by clusterQueue " + workload.admission->cluster_queue)};
  return write;
}

Write stop(const SeenPod& seen, const std::string& why) {
  Write write = write_of(seen, Write::Kind::kDeletePod, {});
  write.body = api::delete_options_json(seen.pod.metadata.uid);
  write.notes = {note_of(seen.pod.metadata, "Pod", "Stopped", why)};
  return write;
}

}  // namespace

void Desk::see(SeenPod seen) {
  const Name pod{seen.pod.metadata.namespace_name, seen.pod.metadata.name};
  if (workloads::queue_of(seen.pod.metadata).empty()) return pod_gone(pod.first, pod.second);
  // One that Kueue made a Workload for is of that, whatever its name.
  const auto own = workload_of_owner_.find(seen.pod.metadata.uid);
  const Name name =
      own != workload_of_owner_.end() ? own->second : Name{pod.first, workloads::workload_name_of(seen.pod)};
  if (const auto known = group_by_pod_.find(pod); known != group_by_pod_.end()) {
    const api::ObjectMeta& before = groups_.at(known->second).pods.at(pod.second).seen.pod.metadata;
    if (before.uid != seen.pod.metadata.uid || known->second != name) pod_gone(pod.first, pod.second);
    else if (is_older(seen.pod.metadata.resource_version, before.resource_version)) return;
  }
  groups_[name].pods[pod.second].seen = std::move(seen);
  group_by_pod_[pod] = name;
  dirty_groups_.insert(name);
  dirty_workloads_.insert(name);
}

void Desk::pod_gone(const std::string& namespace_name, const std::string& name) {
  const auto known = group_by_pod_.find({namespace_name, name});
  if (known == group_by_pod_.end()) return;
  const Name group = known->second;
  group_by_pod_.erase(known);
  groups_.at(group).pods.erase(name);
  if (groups_.at(group).pods.empty()) groups_.erase(group);
  else dirty_groups_.insert(group);
  dirty_workloads_.insert(group);
}

// Its Workload is there: a pod that was seen before is of that.
void Desk::see_anew(const Name& pod, const std::string& uid) {
  const auto known = group_by_pod_.find(pod);
  if (known == group_by_pod_.end()) return;
  const SeenPod& seen = groups_.at(known->second).pods.at(pod.second).seen;
  if (seen.pod.metadata.uid == uid) see(SeenPod(seen));
}

const GroupRecord* Desk::group_of(const SeenWorkload& workload) const {
  if (!workloads::is_of_pods(workload.workload)) return nullptr;
  const auto at = groups_.find({workload.workload.metadata.namespace_name, workload.workload.metadata.name});
  return at == groups_.end() ? nullptr : &at->second;
}

// Of a group that waits, or is on its way out: that pods are not there which it was made of, nor others like them.
// Empty: they are, or it may begin with fewer.
std::string Desk::lacking_pods(const WorkloadRecord& record) const {
  const SeenWorkload& seen = record.seen;
  const bool waits = !seen.is("QuotaReserved") || seen.is("Evicted") || record.evicted_by;
  if (!waits) return "";
  static const GroupRecord k_none;
  const GroupRecord* group = group_of(seen);
  if (group == nullptr && outlasts_pods(seen)) group = &k_none;
  if (group == nullptr) return "";
  std::vector<const api::Pod*> pods;
  for (const auto& [name, pod] : group->pods) pods.push_back(&pod.seen.pod);
  return workloads::lacking_pods(pods, seen.workload);
}

// Its group's pods by pod set, where nodes can tell them apart.
PodsBySet Desk::pods_apart(const WorkloadRecord& record) const {
  const GroupRecord* group = group_of(record.seen);
  std::vector<const api::Pod*> pods;
  if (group == nullptr || group->pods.size() < 2) return {};
  for (const auto& [name, pod] : group->pods)
    if (!pod.seen.pod.terminal() && !pod.seen.pod.metadata.deleted) pods.push_back(&pod.seen.pod);
  return workloads::told_apart(pods, record.seen.workload);
}

void Desk::look_at(const Name& name, GroupRecord& group, const quota::Admission& admission,
                   std::vector<Write>& writes) {
  const auto known = workloads_.find(name);
  if (known == workloads_.end()) {
    let_pods_go(group, true, writes);
    return begin_group(name, group, writes);
  }
  WorkloadRecord& workload = known->second;
  const SeenWorkload& stored = workload.seen;
  if (!workloads::is_of_pods(stored.workload)) {
    const api::Pod& first = group.pods.begin()->second.seen.pod;
    const std::string text = fmt::format("A Workload {} is there already, and is not of these pods", name.second);
    if (group.told != text) notes_.push_back(note_of(first.metadata, "Pod", "ErrWorkloadCompose", text, true));
    group.told = text;
    return;
  }
  const bool over = workload.ended || stored.is("Finished");
  let_pods_go(group, over, writes);
  for (auto& [pod_name, pod] : group.pods) {
    const api::Pod& one = pod.seen.pod;
    if (over && workloads::waits_for_admission(one) && !one.terminal() && !one.metadata.deleted)
      tell(pod, "ErrWorkloadCompose",
           fmt::format("the Workload {} of its group has finished; give the pod a group of its own, or delete that "
                       "Workload",
                       name.second));
  }
  if (stored.workload.metadata.deleted && !over) {
    if (stop_pods(group, "Workload is deleted", false, writes)) dirty_workloads_.insert(name);
    return;
  }
  const quota::WorkloadId id = admission.find(stored.workload.metadata.uid);
  if (!id.valid() || over) return;
  const quota::WorkloadStatus& status = admission.status(id);
  const bool leaving = is_leaving(status);
  if (!leaving) adopt_pods(name, group, workload, writes);
  if (status.phase == quota::WorkloadPhase::kAdmitted && !leaving) {
    if (is_told(stored)) start_pods(group, workload, admission, writes);
    return;
  }
  if (leaving && !stored.is("Evicted")) return;  // people hear first why
  const bool is_group = stored.workload.metadata.annotation(api::kIsGroupAnnotation) != nullptr;
  if (leaving && is_group && !stored.workload.metadata.owners.empty() && has_begun(name, group))
    return own(name, group, workload, {}, writes);  // what it has waited and been through outlasts its pods
  const std::string why = leaving ? why_evicted(workload) : "Not admitted by cluster queue";
  say_left(name, stop_pods(group, why, leaving, writes) && leaving && !has_begun(name, group));
}

// Of a pod by itself that names a queue and does not wait in it: a condition that says so, once.
void Desk::warn(PodRecord& record, std::vector<Write>& writes) {
  const api::Pod& pod = record.seen.pod;
  if (pod.metadata.controller() != nullptr || pod.status.condition(kQueuedCondition) != nullptr) return;
  const bool other = !served_.contains(pod.spec.scheduler_name);
  const std::string text =
      other ? fmt::format(
                  "names queue {}, and the scheduler {}, which Berth does not serve: it does not wait in the "
                  "queue. Make it anew with schedulerName: {}, or install the webhook before",
                  workloads::queue_of(pod.metadata), pod.spec.scheduler_name, *served_.begin())
            : fmt::format(
                  "names queue {}, and has no gate {}: it does not wait in the queue, whose quota does not "
                  "count it. Install the webhook, which gives gates",
                  workloads::queue_of(pod.metadata), api::kAdmissionGate);
  const std::string now = format_rfc3339(wall_);
  const Json condition = {
      {"type", kQueuedCondition}, {"status", "False"},        {"reason", other ? "OtherScheduler" : "NoGate"},
      {"message", text},          {"lastProbeTime", nullptr}, {"lastTransitionTime", now}};
  Write write =
      write_of(record.seen, Write::Kind::kPatchPodStatus,
               {{"metadata", metadata_json(pod.metadata)}, {"status", {{"conditions", Json::array({condition})}}}});
  write.notes = {note_of(pod.metadata, "Pod", "NotQueued", text, true)};
  send(record.lane, std::move(write), writes);
}

// Makes a Workload for those that wait, if they are all there and can be one.
void Desk::begin_group(const Name& name, GroupRecord& group, std::vector<Write>& writes) {
  std::vector<const api::Pod*> pods;
  std::vector<const SeenPod*> seen;
  for (auto& [pod_name, pod] : group.pods) {
    const api::Pod& one = pod.seen.pod;
    if (one.terminal() || one.metadata.deleted) continue;
    const bool queued = has_started(pod.seen, name.second) || workloads::waits_for_admission(one);
    if (!queued || !served_.contains(one.spec.scheduler_name)) {
      warn(pod, writes);
      continue;
    }
    pods.push_back(&one);
    seen.push_back(&pod.seen);
  }
  if (pods.empty()) return;
  workloads::ComposedGroup made = workloads::compose_group(pods);
  if (std::string wrong = why_not_queued(seen, name.second); !wrong.empty()) {
    made.workload.reset();
    made.trouble = std::move(wrong);
  }
  if (!made.workload) {
    if (group.told != made.trouble)
      notes_.push_back(note_of(pods.front()->metadata, "Pod", "ErrWorkloadCompose", made.trouble, true));
    group.told = made.trouble;
    return;
  }
  std::optional<std::string> priority_class;
  if (!set_priority(pods.front()->metadata, pods.front()->spec, *made.workload, priority_class)) return;
  std::vector<std::string> templates;
  for (const size_t example : made.examples) templates.push_back(seen[example]->pod_template);
  Write write{.kind = Write::Kind::kCreateWorkload,
              .party = Write::Party::kGroup,
              .namespace_name = name.first,
              .name = name.second,
              .body = workload_json(*made.workload, templates, priority_class)};
  write.notes = {note_of(pods.front()->metadata, "Pod", "CreatedWorkload",
                         fmt::format("Created Workload: {}/{}", name.first, name.second))};
  if (!send(group.lane, std::move(write), writes) && !group.lane.busy) dirty_groups_.insert(name);
}

// Says once why the pod is not started; empty: nothing is in its way.
void Desk::tell(PodRecord& record, const char* reason, const std::string& why) {
  if (std::exchange(record.told, why) != why && !why.empty())
    notes_.push_back(note_of(record.seen.pod.metadata, "Pod", reason, why, true));
}

// Some of its pods have been let in, and may be there still.
bool Desk::has_begun(const Name& name, const GroupRecord& group) {
  return std::ranges::any_of(group.pods, [&](const auto& pod) {
    return pod.second.lane.busy || (!pod.second.seen.pod.terminal() && has_started(pod.second.seen, name.second));
  });
}

// As many of each pod set as were admitted; what ended well goes on counting, what failed may be replaced.
void Desk::start_pods(GroupRecord& group, const WorkloadRecord& workload, const quota::Admission& admission,
                      std::vector<Write>& writes) {
  const api::Workload& spec = workload.seen.workload;
  const StoredAdmission& stored = *workload.seen.admission;
  std::map<const PodRecord*, std::string> inside;  // and why it is not started nevertheless
  for (const api::WorkloadPodSet& set : spec.pod_sets) {
    const auto given = std::ranges::find(stored.pod_sets, set.name, &quota::PodSetAssignment::name);
    if (given == stored.pod_sets.end()) continue;
    int32_t room = given->count, before = std::max(0, set.count - given->count);  // these had ended well by then
    std::vector<PodRecord*> waiting;
    for (auto& [name, pod] : group.pods) {
      const api::Pod& one = pod.seen.pod;
      if (one.metadata.deleted || one.status.phase == "Failed" || !workloads::is_of_set(one, spec, set)) continue;
      if (one.status.phase == "Succeeded" && before-- > 0) continue;
      if (workloads::waits_for_admission(one)) waiting.push_back(&pod);
      else --room;
    }
    std::stable_partition(waiting.begin(), waiting.end(),
                          [](const PodRecord* pod) { return pod->lane.busy; });  // on their way in
    for (size_t i = 0; i < waiting.size() && room > 0; ++i, --room) {
      const quota::FlavorTerms terms = quota::terms_of(*given, admission.flavors());
      std::string& conflict = inside[waiting[i]];
      conflict = conflict_of(workload.seen, *given, terms, waiting[i]->seen.pod_template);
      if (conflict.empty()) send(waiting[i]->lane, start(waiting[i]->seen, workload.seen, *given, terms), writes);
    }
  }
  for (auto& [name, pod] : group.pods) {
    const api::Pod& one = pod.seen.pod;
    const auto let_in = inside.find(&pod);
    const bool outside =
        workloads::waits_for_admission(one) && !one.metadata.deleted && !one.terminal() && let_in == inside.end();
    if (outside) tell(pod, "ErrWorkloadCompose", workloads::why_outside(one, spec));
    else tell(pod, "FailedToStart", let_in == inside.end() ? "" : let_in->second);
  }
}

// True: none of them is there any more. One that is evicted says why before it is deleted.
bool Desk::stop_pods(GroupRecord& group, const std::string& why, bool evicted, std::vector<Write>& writes) {
  bool gone = true;
  for (auto& [name, pod] : group.pods) {
    const api::Pod& one = pod.seen.pod;
    if (one.terminal() || !has_started(pod.seen, group_by_pod_.at(name_of(one.metadata)).second)) continue;
    gone = false;
    if (one.metadata.deleted) continue;
    const std::string* told = one.metadata.annotation(api::kEvictedAnnotation);
    if (evicted && (told == nullptr || !told->ends_with(why))) {
      Json metadata = metadata_json(one.metadata);
      metadata["annotations"][api::kEvictedAnnotation] = evicted_text(why, wall_);
      send(pod.lane, write_of(pod.seen, Write::Kind::kPatchPod, {{"metadata", std::move(metadata)}}), writes);
    } else {
      send(pod.lane, stop(pod.seen, why), writes);
    }
  }
  return gone;
}

// Takes Kueue's finalizer off pods that are kept by nothing else; `over`: nobody counts them any more.
void Desk::let_pods_go(GroupRecord& group, bool over, std::vector<Write>& writes) {
  for (auto& [name, pod] : group.pods) {
    const api::Pod& one = pod.seen.pod;
    const bool idle = one.terminal() || one.spec.node_name.empty();
    if (!pod.seen.finalizer || !(one.metadata.deleted ? idle : over && one.terminal())) continue;
    Json metadata = metadata_json(one.metadata);
    metadata["finalizers"] = pod.seen.finalizers;
    send(pod.lane, write_of(pod.seen, Write::Kind::kPatchPod, {{"metadata", std::move(metadata)}}), writes);
  }
}

// Pods that came after the Workload was made own it with the others, so that it lasts as long as one of them. Those
// that are like none of its own do not: once its own are gone, so is it, and another is made of them.
void Desk::adopt_pods(const Name& name, GroupRecord& group, const WorkloadRecord& workload,
                      std::vector<Write>& writes) {
  const api::ObjectMeta& metadata = workload.seen.workload.metadata;
  std::vector<api::OwnerReference> owners = metadata.owners;
  for (const auto& [pod_name, pod] : group.pods) {
    const api::Pod& whole = pod.seen.pod;
    const api::ObjectMeta& one = whole.metadata;
    const auto is_of = [&](const api::WorkloadPodSet& set) {
      return workloads::is_of_set(whole, workload.seen.workload, set);
    };
    if (one.deleted || std::ranges::find(owners, one.uid, &api::OwnerReference::uid) != owners.end()) continue;
    if (std::ranges::none_of(workload.seen.workload.pod_sets, is_of)) continue;
    owners.push_back(workloads::pod_owner(one));
  }
  if (owners.size() != metadata.owners.size()) own(name, group, workload, owners, writes);
}

// The Workload lasts as long as one of these, or until it is abandoned.
void Desk::own(const Name& name, GroupRecord& group, const WorkloadRecord& workload,
               const std::vector<api::OwnerReference>& owners, std::vector<Write>& writes) {
  if (workload.lane.busy) dirty_groups_.insert(name);
  else send(group.lane, own_by(workload.seen, owners, Write::Party::kGroup), writes);
}

}  // namespace berth::queueing
