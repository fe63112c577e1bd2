// QueueController: what a queueing controller does beside its decisions, in a Simulation: objects of queues become
// events, and Jobs and pods that name a queue become Workloads, which it keeps up to date as they go on.
//
// It decides nothing: the engine does, and the Simulation starts and stops pods. Owner thread only.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/decode.h"
#include "bridge/topology.h"
#include "engine/event.h"
#include "queueing/seen.h"
#include "quota/admission.h"
#include "scenario/report.h"
#include "workloads/kueue/queued.h"

namespace berth::scenario {

// A flavor, queue, cohort, AdmissionCheck or WorkloadPriorityClass.
bool is_queueing(const api::Object& object);

class QueueController {
 public:
  explicit QueueController(std::vector<engine::Event>& outbox) : outbox_(outbox) {}

  void put(const api::Object& object);
  // Without any LocalQueue nobody waits, whatever he names.
  bool serves() const { return any_local_queue_; }
  // Jobs that name no queue wait in the namespace's default one.
  bool has_default_queue(const std::string& namespace_name) const { return with_default_.contains(namespace_name); }

  // Who waits: an object that was submitted, or a PodGroup by its number; the other is SIZE_MAX.
  struct Owner {
    size_t object = SIZE_MAX;
    size_t group = SIZE_MAX;
    friend auto operator<=>(const Owner&, const Owner&) = default;
  };
  // What people call it: "Job", "default/train".
  struct Called {
    std::string kind, name;
  };
  // `refused`: why LimitRanges refuse its pods; empty: they do not.
  void submit(const api::Workload& workload, Owner owner, Called called, Time created,
              const bridge::TopologyLevels& levels, std::string refused = "");
  // One that waits for quota asks for this now.
  void change(Owner owner, const api::Workload& workload, const bridge::TopologyLevels& levels, std::string refused);
  // Its pods that are there, by pod set, where nodes can tell them apart (workloads::told_apart()).
  void name_members(Owner owner, const api::Workload& workload, const std::vector<std::vector<const api::Pod*>>& pods,
                    const bridge::TopologyLevels& levels);
  // Why it is not to be let in as it is; empty: it may be.
  void refuse(Owner owner, std::string why);
  // As many of its pods are needed no more, by pod set.
  void reclaim(Owner owner, const std::vector<int32_t>& pods);
  void finish(Owner owner, Time now);
  // So many of its pods are ready; an admitted workload with as many as it was admitted with is.
  void set_ready(Owner owner, int32_t pods, Time now);
  // What a check's controller says of what is called `name`. False: there is no such workload.
  bool report_check(const std::string& name, quota::CheckReport report, Time now);
  // spec.active of the Workload of what is called `name`, "default/train". False: there is none.
  bool set_active(const std::string& name, bool active);
  // Its pods have gone, and it may be let in anew.
  void released(Owner owner);

  // What its pods are told, by pod set, and how many there are.
  struct Admitted {
    Owner owner;
    std::vector<workloads::PodSetInfo> infos;
    std::vector<int32_t> counts;
  };
  // One that its queue knows already goes on from where it stands; the wall's time is `ahead` of `now`. A Workload that
  // is on its way out is among leaving(); one that is admitted comes with what its pods are told.
  std::optional<Admitted> resume(const queueing::SeenWorkload& stored, Owner owner, Called called, Time created,
                                 const bridge::TopologyLevels& levels, Time now, Duration ahead);
  // It has quota, and waits for its checks.
  void reserve(const quota::AdmissionDecision& decision, const quota::Admission& admission);
  Admitted admit(const quota::AdmissionDecision& decision, const quota::Admission& admission, Time now);
  Owner evict(const quota::AdmissionDecision& decision, const quota::Admission& admission);
  // Those that were evicted and whose pods are still there.
  const std::vector<Owner>& leaving() const { return leaving_; }
  bool is_leaving(Owner owner) const { return std::ranges::find(leaving_, owner) != leaving_.end(); }
  bool knows(Owner owner) const { return by_owner_.contains(owner); }
  // It is known, and has no quota.
  bool waits(Owner owner, const quota::Admission& admission) const;
  std::string uid_of(Owner owner) const;  // of its Workload; empty: it has none
  // The pods that one asks for whose pods are all alike.
  int32_t count_of(Owner owner) const { return all_[by_owner_.at(owner)].workload.pod_sets.front().count; }
  // Of one that is known; none: it is not admitted.
  std::optional<Time> admitted_at(Owner owner) const { return all_[by_owner_.at(owner)].admitted; }

  std::vector<WorkloadReport> workloads(const quota::Admission& admission) const;
  static std::vector<QueueReport> queues(const quota::Admission& admission);

 private:
  struct Record {
    model::Workload workload;
    std::string waits_for_class = {};  // a WorkloadPriorityClass that is not there
    std::string refused = {};          // why LimitRanges refuse its pods
    Owner owner;
    std::string kind, name;
    Time submitted;
    std::optional<Time> admitted = {}, finished = {};
    bool ready = false;  // as the engine was told, since it was admitted
    int evictions = 0;
    std::string evicted_for = {};                     // the last time, "Preempted by default/urgent"
    std::vector<quota::PodSetAssignment> given = {};  // when it was admitted last
  };
  Record& add(const api::Workload& workload, Owner owner, Called called, Time created,
              const bridge::TopologyLevels& levels);
  static Admitted told(const Record& record, const quota::Flavors& flavors);
  std::string called(const std::string& workload) const;
  Record* find(const std::string& name);
  size_t find(const quota::AdmissionDecision& decision, const quota::Admission& admission) const;

  std::vector<engine::Event>& outbox_;
  std::map<std::string, int32_t, std::less<>> priorities_;  // of WorkloadPriorityClasses
  quota::Flavors flavors_;
  std::vector<Record> all_;  // in the order of submission
  std::map<std::string, size_t> by_uid_;
  std::map<Owner, size_t> by_owner_;
  std::vector<Owner> leaving_;
  bool any_local_queue_ = false;
  std::set<std::string> with_default_;  // namespaces
};

}  // namespace berth::scenario
