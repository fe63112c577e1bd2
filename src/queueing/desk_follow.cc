// The part of Desk that keeps a Workload what its owner is: whoever edits one that waits by hand gains nothing by it.
#include <fmt/format.h>

#include <algorithm>

#include "api/kueue_names.h"
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
std::optional<Desk::Owned> Desk::owned(const SeenWorkload& seen) const {
  if (seen.is("QuotaReserved")) return std::nullopt;
  if (const JobRecord* record = job_of(seen)) {
    const SeenJob& job = record->seen;
    if (!job.finished.empty() || !job.job.suspend || job.job.active > 0 || job.started || is_injected(job.job))
      return std::nullopt;
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

// Writes the sets of one that waits where they are not its owner's; true: it has to be looked at again then.
bool Desk::follow(const Name& name, WorkloadRecord& record, std::vector<Write>& writes) {
  const SeenWorkload& seen = record.seen;
  const JobRecord* job = job_of(seen);
  const std::pair versions(job == nullptr ? 0 : job->seen.job.metadata.generation, seen.workload.metadata.generation);
  if (record.followed == versions || seen.is("QuotaReserved")) return false;
  const std::optional<Owned> owner = owned(seen);
  if (!owner) return false;
  if (same_sets(seen, owner->sets, owner->templates)) {
    record.followed = versions;
    if (std::exchange(record.recount, false)) tell_engine(record);  // LimitRanges may refuse it now, or no more
    return false;
  }
  const api::ObjectMeta& metadata = seen.workload.metadata;
  Json sets = Json::array();
  for (size_t i = 0; i < owner->sets.size(); ++i) {
    const api::WorkloadPodSet& set = owner->sets[i];
    Json& one = sets.emplace_back(Json{{"name", set.name}, {"count", set.count}});
    if (set.min_count) one["minCount"] = *set.min_count;
    one["template"] = Json::parse(owner->templates[i]);
  }
  const std::string kind = job != nullptr ? "Job" : "pods";
  Write write{.kind = Write::Kind::kPatchWorkload,
              .party = Write::Party::kWorkload,
              .namespace_name = name.first,
              .name = name.second,
              .body = Json{{"metadata", metadata_json(metadata)}, {"spec", {{"podSets", std::move(sets)}}}}.dump()};
  write.notes = {note_of(job != nullptr ? job->seen.job.metadata : metadata, job != nullptr ? "Job" : "Workload",
                         "UpdatedWorkload",
                         fmt::format("Updated Workload to match the {}: {}/{}", kind, name.first, name.second))};
  if (send(record.lane, std::move(write), writes)) record.followed = versions;  // once, whatever the server keeps of it
  else if (!record.lane.busy) dirty_workloads_.insert(name);
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
    at->second.followed = {-1, -1};
    at->second.recount = true;
    dirty_workloads_.insert(at->first);
  }
}

}  // namespace berth::queueing
