// Desk: sees to it that Jobs and Workloads on the API server become what the engine has decided.
//
// It is told what the server has (watches and answers) and asks the engine's admission what holds. From the difference
// come the engine's events and the next write to each object: a Workload for a Job that names a queue; its conditions
// and what it was given; the Job's start with what its flavors add to its pods, and its stop, after which its template
// is as it was. Nothing else is remembered, so that a lost answer, a conflict or a restart need nothing of their own:
// what is stored is looked at again.
//
// Order matters where somebody could be surprised: a Job starts only when its admission is stored, and the quota of an
// evicted one goes to others only when its pods are gone, and what is stored says that it has none.
//
// Owner thread only; deterministic. Of one object at most one write is under way. Source: Kueue's job reconciler and
// workload controller, https://kueue.sigs.k8s.io/docs/concepts/workload/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "bridge/to_model.h"
#include "engine/event.h"
#include "queueing/desk_records.h"
#include "queueing/pod_defaults.h"
#include "queueing/seen.h"
#include "queueing/write.h"
#include "quota/admission.h"
#include "workloads/kueue/pod_group.h"

namespace berth::queueing {

struct Wanted;

class Desk {
 public:
  // `pods_ready`: the engine is to hear whether pods are ready (quota::WaitForPodsReady).
  Desk(bridge::SchedulerNames served, bridge::TopologyLevels levels, bool pods_ready = false)
      : served_(std::move(served)), levels_(std::move(levels)), pods_ready_(pods_ready) {}

  // What watches bring.
  void see(SeenWorkload seen);
  void see(SeenJob seen);
  void see(SeenPod seen);
  void workload_gone(const std::string& namespace_name, const std::string& name);
  void job_gone(const std::string& namespace_name, const std::string& name);
  void pod_gone(const std::string& namespace_name, const std::string& name);
  // Of WorkloadPriorityClasses and PriorityClasses; empty: it has gone.
  void see_priority(const std::string& workload_priority_class, std::optional<int32_t> value);
  void see_pod_priority(const std::string& priority_class, std::optional<int32_t> value);
  // What pods are given when they are made. Whoever waits for quota is counted anew with it.
  void see(api::LimitRange range);
  void see(const api::RuntimeClass& runtime_class);
  void limit_range_gone(const std::string& namespace_name, const std::string& name);
  void runtime_class_gone(const std::string& name);

  // For the engine, in their order. Both times are now: what objects say of times becomes that of cycles.
  std::vector<engine::Event> take_events(Time now, Time wall);
  // Events about objects to which nothing is written.
  std::vector<Note> take_notes() { return std::exchange(notes_, {}); }
  // What the engine has decided about these; the others are compared now and then.
  void decided(const std::vector<quota::AdmissionDecision>& decisions, const quota::Admission& admission);

  // What is to be written now; the engine has applied take_events(). `wall` is for lastTransitionTime. Reasons of those
  // that wait are written at most every `told_every`.
  // At most `room` writes, `tell_room` of which only tell why somebody waits, and come last; the rest is for the next
  // time.
  std::vector<Write> look(const quota::Admission& admission, Time now, Time wall, Duration told_every,
                          size_t room = SIZE_MAX, size_t tell_room = SIZE_MAX);
  void answered(const Answer& answer, Time now);
  // When look() would find more to do by time alone.
  std::optional<Time> wakeup() const;

  size_t workloads() const { return workloads_.size(); }

  // What the engine is to know of a Job, or of a pod by itself: whether it names a queue, and its Workload.
  engine::OwnerQueued owner(const std::string& uid) const;

  // For checks that Berth sees to itself: the Workload as it was seen last, null without it; those with checks that
  // have changed or gone since this was asked; and what checks say of one that has quota, all of them at once.
  const SeenWorkload* find(const std::pair<std::string, std::string>& name) const;
  std::set<std::pair<std::string, std::string>> take_checked() { return std::exchange(checked_, {}); }
  void say(const std::pair<std::string, std::string>& name, CheckWords words);

 private:
  using Name = std::pair<std::string, std::string>;  // namespace, name
  static Name name_of(const api::ObjectMeta& metadata) { return {metadata.namespace_name, metadata.name}; }
  void compare_some();
  void tell_some(const quota::Admission& admission, std::vector<Write>& writes, size_t room);
  void take_in(SeenWorkload seen);
  void take_in(const Answer& answer);
  void tell_engine(WorkloadRecord& record);
  void tell_readiness(WorkloadRecord& record);
  void forget(std::map<Name, WorkloadRecord>::iterator at);
  bool is_ours(const api::Job& job) const { return served_.contains(job.pod_template.spec.scheduler_name); }
  void see_anew(const Name& pod, const std::string& uid);
  void tell_owner(const std::string& uid) { events_.emplace_back(owner(uid)); }
  void tell(JobRecord& record, const char* reason, const std::string& text);
  void tell(PodRecord& record, const char* reason, const std::string& why);
  void tell_of_labels(JobRecord& record, const SeenWorkload& workload);
  std::optional<Write> warn_of_other_scheduler(const SeenJob& job) const;
  std::optional<Owned> owned(const SeenWorkload& seen) const;
  std::optional<Named> named_by_owner(const SeenWorkload& seen) const;
  void introduce_anew(WorkloadRecord& record);
  bool withdraw(const Name& name, WorkloadRecord& record, const quota::WorkloadStatus& status,
                std::vector<Write>& writes);
  void hear_of_workload(const Answer& answer);
  void hear_of_start(JobRecord& record, const Answer& answer);
  void refuse(JobRecord& record, const std::string& why, bool for_good);
  bool is_held(WorkloadRecord& record);
  void end_hold(JobRecord& record);
  bool follow(const Name& name, WorkloadRecord& record, std::vector<Write>& writes);
  const WorkloadRecord* workload_of(const SeenJob& job) const;
  const std::string* other_of_owner(const SeenWorkload& seen) const;
  void recount(const std::string& namespace_name);
  void look_at(const Name& name, WorkloadRecord& record, const quota::Admission& admission, std::vector<Write>& writes);
  bool is_orphan(const WorkloadRecord& record) const;
  bool is_abandoned(const SeenWorkload& seen);
  void abandon(const Name& name, WorkloadRecord& record, std::vector<Write>& writes);
  bool has_lost_job(const SeenWorkload& seen) const;
  bool want(const Name& name, WorkloadRecord& record, const quota::WorkloadStatus& status,
            const workloads::GroupEnd& end, Wanted& wanted, std::vector<Note>& notes, std::vector<Write>& writes);
  void follow_checks(const WorkloadRecord& record, const quota::WorkloadStatus& status, Wanted& wanted,
                     std::vector<Note>& notes);
  bool is_ready(const SeenWorkload& seen, const quota::WorkloadStatus& status) const;
  void follow_readiness(WorkloadRecord& record, const quota::WorkloadStatus& status, Wanted& wanted);
  void say_requeue(const SeenWorkload& seen, const quota::WorkloadStatus& status, Wanted& wanted) const;
  void look_at(const Name& name, JobRecord& record, const quota::Admission& admission, std::vector<Write>& writes);
  void look_at(const Name& name, GroupRecord& group, const quota::Admission& admission, std::vector<Write>& writes);
  void stop_deleted(const Name& name, JobRecord& record, const quota::Admission& admission, std::vector<Write>& writes);
  void warn(PodRecord& record, std::vector<Write>& writes);
  static bool has_begun(const Name& name, const GroupRecord& group);
  std::optional<bool> has_run(const Name& name, const SeenWorkload& seen) const;
  void begin_group(const Name& name, GroupRecord& group, std::vector<Write>& writes);
  void start_pods(GroupRecord& group, const WorkloadRecord& workload, const quota::Admission& admission,
                  std::vector<Write>& writes);
  bool stop_pods(GroupRecord& group, const std::string& why, bool evicted, std::vector<Write>& writes);
  void let_pods_go(GroupRecord& group, bool over, std::vector<Write>& writes);
  void adopt_pods(const Name& name, GroupRecord& group, const WorkloadRecord& workload, std::vector<Write>& writes);
  void own(const Name& name, GroupRecord& group, const WorkloadRecord& workload,
           const std::vector<api::OwnerReference>& owners, std::vector<Write>& writes);
  static workloads::GroupEnd end_of(const SeenWorkload& seen, const JobRecord* job, const GroupRecord* group);
  static std::vector<int32_t> reclaimable_of(WorkloadRecord& record, const JobRecord* job, const GroupRecord* group);
  bool is_needed(const Name& name, const SeenWorkload& seen, const quota::Admission& admission) const;
  void let_go(const Name& name, WorkloadRecord& record, std::vector<Write>& writes);
  void say_left(const Name& name, bool left);
  void give_back(const Name& name, WorkloadRecord& record, Wanted& wanted);
  void deactivate(const Name& name, WorkloadRecord& record, std::vector<Write>& writes);
  bool may_write(Lane& lane);
  bool send(Lane& lane, Write&& write, std::vector<Write>& writes);
  Lane* lane_of(const Write& write);
  const JobRecord* job_of(const SeenWorkload& workload) const;
  std::string owner_of(const model::Workload& workload) const;
  static std::string why_evicted(const WorkloadRecord& record);
  const GroupRecord* group_of(const SeenWorkload& workload) const;
  std::string lacking_pods(const WorkloadRecord& record) const;
  PodsBySet pods_apart(const WorkloadRecord& record) const;
  bool set_priority(const api::ObjectMeta& metadata, const api::PodSpec& spec, api::Workload& workload,
                    std::optional<std::string>& priority_class) const;
  std::optional<Write> create_workload(JobRecord& record);

  const bridge::SchedulerNames served_;
  const bridge::TopologyLevels levels_;
  const bool pods_ready_;
  std::map<Name, WorkloadRecord> workloads_;
  std::string watched_version_;  // the newest of a Workload that the watch has brought
  std::map<Name, JobRecord> jobs_;
  std::map<std::string, Name> workload_of_owner_;  // by UID of the owner
  std::map<std::string, Name> job_by_uid_;
  std::vector<std::pair<Time, std::string>> gone_jobs_;  // by UID, whose pods may be there still
  std::map<Name, GroupRecord> groups_;                   // by the name of their Workload
  std::map<Name, Name> group_by_pod_;
  std::map<std::string, int32_t, std::less<>> queue_priorities_, pod_priorities_;
  PodDefaults defaults_;
  std::vector<engine::Event> events_;
  std::vector<Note> notes_;
  std::set<Name> dirty_workloads_, dirty_jobs_, dirty_groups_;
  std::set<Name> checked_;
  std::set<Name> decided_workloads_;  // something was decided about these; they come first
  std::set<Name> untold_workloads_;   // there was no room to say why these wait
  Name told_until_;
  size_t tell_room_ = 0;  // in this look
  std::optional<Time> compared_at_;
  Name compared_until_;
  Time now_, wall_;
  Duration told_every_;
  std::optional<Time> wakeup_;
};

}  // namespace berth::queueing
