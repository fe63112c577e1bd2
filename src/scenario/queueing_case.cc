#include "scenario/queueing_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/kueue.h"
#include "base/check.h"
#include "bridge/queues.h"
#include "model/quantity.h"
#include "quota/admission.h"
#include "scenario/lined_value.h"

namespace berth::scenario {
namespace {

using quota::AdmissionDecision;
using quota::WorkloadId;
using Json = nlohmann::json;

// A workload that nothing settles would be tried for ever.
constexpr int kCyclesMax = 1000;

tl::unexpected<Error> at_line(const std::string& file, int line, std::string_view what) {
  return fail(ErrorCode::kInvalidInput, fmt::format("{}:{}: {}", file, line, what));
}

// RFC 7396.
void merge_patch(LinedValue& target, const LinedValue& patch) {
  if (patch.kind != LinedValue::Kind::kMap) {
    target = patch;
    return;
  }
  if (target.kind != LinedValue::Kind::kMap) target = {LinedValue::Kind::kMap, patch.line, "", {}};
  for (const LinedMember& member : patch.members) {
    const auto known = std::ranges::find(target.members, member.name, &LinedMember::name);
    if (member.value.kind == LinedValue::Kind::kNull) {
      if (known != target.members.end()) target.members.erase(known);
    } else if (known != target.members.end()) {
      merge_patch(known->value, member.value);
    } else {
      LinedMember& added = target.members.emplace_back(LinedMember{member.name, {}});
      merge_patch(added.value, member.value);
    }
  }
}

Json pod_sets_json(const std::vector<quota::PodSetAssignment>& assignment) {
  Json out = Json::array();
  for (const quota::PodSetAssignment& set : assignment) {
    Json& json = out.emplace_back(Json{{"name", set.name}, {"count", set.count}});
    for (const auto& [resource, pick] : set.flavors) json["flavors"][resource] = pick.flavor;
    for (const auto& [resource, amount] : set.usage)
      json["resourceUsage"][resource] = model::format_quota(resource, amount);
  }
  return out;
}

class CasePlayer {
 public:
  CasePlayer(std::string file, quota::AdmissionOptions options)
      : file_(std::move(file)), admission_(std::move(options)) {
    admission_.set_namespace_labels("default", {{"kubernetes.io/metadata.name", "default"}});
  }

  Status create(const LinedValue& manifest) {
    const LinedValue* metadata = manifest.find("metadata");
    if (metadata == nullptr) return at_line(file_, manifest.line, "an object has metadata with a name");
    const std::string name = metadata->get("name");
    if (objects_.contains({manifest.get("kind"), name}))
      return at_line(file_, manifest.line,
                     fmt::format("there is a {} '{}' already; names are unique in a case", manifest.get("kind"), name));
    return apply(objects_[{manifest.get("kind"), name}] = manifest, name);
  }

  Status patch(const LinedValue& patch) {
    const auto known = objects_.find({patch.get("kind"), patch.get("name")});
    const LinedValue* spec = patch.find("spec");
    if (known == objects_.end() || spec == nullptr)
      return at_line(file_, patch.line,
                     "a patch names the kind and name of an object that was created, and has a spec");
    LinedValue wrapped{LinedValue::Kind::kMap, patch.line, "", {{"spec", *spec}}};
    merge_patch(known->second, wrapped);
    return apply(known->second, patch.get("name"));
  }

  // status.reclaimablePods of a workload: a list of {name, count}, or the count by pod set.
  Status reclaim(const LinedValue& name, const LinedValue& pods) {
    BERTH_TRY(id, workload(name));
    LinedValue list{LinedValue::Kind::kList, pods.line, "", {}};
    if (pods.kind == LinedValue::Kind::kList) list = pods;
    else
      for (const LinedMember& one : pods.members)
        list.members.push_back(
            {"",
             {LinedValue::Kind::kMap,
              pods.line,
              "",
              {{"name", {LinedValue::Kind::kString, pods.line, one.name, {}}}, {"count", one.value}}}});
    LinedValue& manifest = objects_[{"Workload", admission_.status(id).workload.name}];
    merge_patch(manifest, {LinedValue::Kind::kMap,
                           pods.line,
                           "",
                           {{"status", {LinedValue::Kind::kMap, pods.line, "", {{"reclaimablePods", list}}}}}});
    return apply(manifest, name.text);
  }

  Status finish(const LinedValue& name) {
    BERTH_TRY(id, workload(name));
    admission_.finish(id);
    event({{"event", "Finished"}, {"workload", name.text}});
    return {};
  }

  Status remove(const LinedValue& name) {
    BERTH_TRY(id, workload(name));
    admission_.remove(id);
    objects_.erase({"Workload", name.text});
    ids_.erase(name.text);
    event({{"event", "Deleted"}, {"workload", name.text}});
    return {};
  }

  void settle() {
    for (int cycles = 0; cycles < kCyclesMax; ++cycles) {
      now_ = now_ + Duration::seconds(1);
      std::vector<AdmissionDecision> decisions;
      const bool changes = admission_.run_cycle(now_, decisions);
      for (const AdmissionDecision& decision : decisions) tell(decision);
      for (const AdmissionDecision& decision : decisions)
        if (decision.kind == AdmissionDecision::Kind::kEvict) admission_.released(decision.workload);
      if (!changes) return;
    }
    settled_ = false;
  }

  Json step(int number) {
    std::ranges::sort(events_, {}, [](const Json& event) { return event.dump(); });
    Json out = {{"step", number}, {"events", std::exchange(events_, {})}};
    if (!std::exchange(settled_, true)) out["settled"] = false;
    out["workloads"] = Json::object();
    for (const auto& [name, id] : ids_) out["workloads"][name] = workload_json(admission_.status(id));
    out["clusterQueues"] = Json::object();
    for (const auto& [name, queue] : admission_.cluster_queues()) out["clusterQueues"][name] = queue_json(name);
    return out;
  }

 private:
  void event(Json json) { events_.push_back(std::move(json)); }

  Result<WorkloadId> workload(const LinedValue& name) const {
    const auto found = ids_.find(name.text);
    if (found == ids_.end()) return at_line(file_, name.line, fmt::format("there is no workload '{}'", name.text));
    return found->second;
  }

  Status apply(const LinedValue& manifest, const std::string& name) {
    api::Problems problems;
    const auto object = api::decode_kueue(to_document(manifest, file_), problems);
    if (!object) return fail(ErrorCode::kInvalidInput, api::to_string(problems.front()));
    if (const auto* workload = std::get_if<api::Workload>(&*object)) {
      model::Workload value = bridge::to_model(*workload);
      const auto known = ids_.find(name);
      now_ = now_ + Duration::seconds(1);
      value.uid =
          known != ids_.end() ? admission_.status(known->second).workload.uid : fmt::format("uid-{:06}", ids_made_++);
      value.created = known != ids_.end() ? admission_.status(known->second).workload.created : now_;
      ids_[name] = admission_.upsert(std::move(value));
    } else if (const auto* flavor = std::get_if<api::ResourceFlavor>(&*object)) {
      admission_.upsert(flavor->flavor);
    } else if (const auto* queue = std::get_if<api::ClusterQueue>(&*object)) {
      admission_.upsert(queue->queue);
    } else if (const auto* cohort = std::get_if<api::Cohort>(&*object)) {
      admission_.upsert(cohort->cohort);
    } else if (const auto* check = std::get_if<api::AdmissionCheck>(&*object)) {
      admission_.upsert(check->check);
    } else if (const auto* local = std::get_if<api::LocalQueue>(&*object)) {
      admission_.upsert(local->queue);
    }
    return {};
  }

  std::string name_of(WorkloadId id) const { return admission_.status(id).workload.name; }

  void tell(const AdmissionDecision& decision) {
    const std::string name = name_of(decision.workload);
    if (decision.kind == AdmissionDecision::Kind::kAdmit)
      return event({{"event", "QuotaReserved"},
                    {"workload", name},
                    {"assignment",
                     {{"clusterQueue", decision.cluster_queue}, {"podSets", pod_sets_json(decision.assignment)}}}});
    Json json = {{"event", "Evicted"}, {"workload", name}, {"reason", decision.reason}};
    if (decision.preemptor.valid()) {
      json["preemption"] = decision.preemption;
      json["by"] = name_of(decision.preemptor);
      json["preemptorPath"] = decision.preemptor_path;
      json["preempteePath"] = decision.preemptee_path;
    } else {
      json["message"] = decision.message;
    }
    event(std::move(json));
  }

  static Json workload_json(const quota::WorkloadStatus& status) {
    if (status.phase == quota::WorkloadPhase::kFinished) return {{"state", "Finished"}};
    if (status.phase == quota::WorkloadPhase::kAdmitted)
      return {
          {"state", "Admitted"}, {"clusterQueue", status.cluster_queue}, {"podSets", pod_sets_json(status.assignment)}};
    Json out = {{"state", "Pending"}};
    const auto say = [&](const char* key, const std::string& text) {
      if (!text.empty()) out[key] = text;
    };
    say("reason", status.reason);
    say("message", status.message);
    say("evicted", status.evicted);
    say("preempted", status.preempted);
    if (!status.workload.active) out["active"] = false;
    return out;
  }

  Json queue_json(const std::string& name) const {
    const quota::QueueStatus status = admission_.queue_status(name);
    Json held = Json::object();
    for (const auto& one : status.held)
      held[one.flavor][one.resource] = {{"total", model::format_quota(one.resource, one.total)},
                                        {"borrowed", model::format_quota(one.resource, one.borrowed)}};
    Json out = {{"active", status.active ? "True" : "False"},
                {"activeReason", status.reason},
                {"pending", status.pending},
                {"reserving", status.reserving},
                {"admitted", status.admitted},
                {"reservation", held}};
    if (status.share) out["weightedShare"] = status.share->told();
    return out;
  }

  std::string file_;
  quota::Admission admission_;
  std::map<std::pair<std::string, std::string>, LinedValue> objects_;  // by kind and name, as patched
  std::map<std::string, WorkloadId> ids_;
  int ids_made_ = 0;
  std::vector<Json> events_;
  bool settled_ = true;
  Time now_;
};

Result<quota::AdmissionOptions> read_config(const LinedValue* config, const std::string& file) {
  quota::AdmissionOptions options;
  if (config == nullptr) return options;
  for (const auto& [key, value] : config->members)
    if (key != "fairSharing")
      return at_line(file, value.line, fmt::format("config: '{}' is not played; a case may set fairSharing", key));
  const LinedValue* fair = config->find("fairSharing");
  if (fair == nullptr) return options;
  for (const auto& [key, value] : fair->members)
    if (key != "preemptionStrategies" && (key != "enable" || value.text != "true"))
      return at_line(file, value.line,
                     fmt::format("config: fairSharing: '{}: {}' is not played; a case may set preemptionStrategies",
                                 key, value.text));
  options.fair.emplace();
  if (const LinedValue* strategies = fair->find("preemptionStrategies"))
    for (const LinedMember& one : strategies->members) {
      if (one.value.text == "LessThanOrEqualToFinalShare")
        options.fair->push_back(quota::FairRule::kLessThanOrEqualToFinalShare);
      else if (one.value.text == "LessThanInitialShare")
        options.fair->push_back(quota::FairRule::kLessThanInitialShare);
      else
        return at_line(
            file, one.value.line,
            fmt::format("'{}' is neither LessThanOrEqualToFinalShare nor LessThanInitialShare", one.value.text));
    }
  if (options.fair->empty())
    options.fair = {quota::FairRule::kLessThanOrEqualToFinalShare, quota::FairRule::kLessThanInitialShare};
  return options;
}

// By name of the workload, or a list of {workload or name, podSets or reclaimablePods}.
Status play_reclaimable(CasePlayer& player, const LinedMember& one, const std::string& file) {
  if (!one.name.empty()) return player.reclaim({LinedValue::Kind::kString, one.value.line, one.name, {}}, one.value);
  const LinedValue* workload = one.value.find("workload");
  if (workload == nullptr) workload = one.value.find("name");
  const LinedValue* pods = one.value.find("podSets");
  if (pods == nullptr) pods = one.value.find("reclaimablePods");
  if (workload == nullptr || pods == nullptr)
    return at_line(file, one.value.line,
                   "reclaimable pods are those of a workload: {workload: NAME, podSets: [{name, count}]}");
  return player.reclaim(*workload, *pods);
}

Status check_kind(const LinedValue* value, LinedValue::Kind wanted, std::string_view what, const std::string& file) {
  if (value == nullptr || value->kind == wanted) return {};
  return at_line(file, value->line,
                 fmt::format("{} is {}", what, wanted == LinedValue::Kind::kList ? "a list" : "a map"));
}

Status play_step(CasePlayer& player, const LinedValue& step, const std::string& file) {
  BERTH_TRY_VOID(check_kind(&step, LinedValue::Kind::kMap, "a step", file));
  for (const char* key : {"create", "finish", "delete", "patch"})
    BERTH_TRY_VOID(check_kind(step.find(key), LinedValue::Kind::kList, key, file));
  for (const auto& [key, value] : step.members)
    if (key != "create" && key != "finish" && key != "reclaimable" && key != "delete" && key != "patch")
      return at_line(file, value.line, fmt::format("'{}' is none of create, finish, reclaimable, delete, patch", key));
  static const LinedValue nothing;
  const auto list = [&](std::string_view key) -> const std::vector<LinedMember>& {
    const LinedValue* value = step.find(key);
    return value == nullptr ? nothing.members : value->members;
  };
  for (const LinedMember& one : list("create")) {
    BERTH_TRY_VOID(player.create(one.value));
    player.settle();
  }
  for (const LinedMember& one : list("finish")) BERTH_TRY_VOID(player.finish(one.value));
  for (const LinedMember& one : list("reclaimable")) BERTH_TRY_VOID(play_reclaimable(player, one, file));
  for (const LinedMember& one : list("delete")) BERTH_TRY_VOID(player.remove(one.value));
  for (const LinedMember& one : list("patch")) BERTH_TRY_VOID(player.patch(one.value));
  player.settle();
  return {};
}

}  // namespace

Result<std::string> play_queueing_case(const std::string& text, const std::string& file) {
  api::Problems problems;
  const auto documents = api::read_plain_documents(text, file, problems);
  if (!problems.empty()) return fail(ErrorCode::kInvalidInput, api::to_string(problems.front()));
  if (documents.size() != 1)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}: a case is one document, this file has {}", file, documents.size()));
  const LinedValue root = to_lined_value(documents.front());
  const LinedValue* objects = root.find("objects");
  const LinedValue* steps = root.find("steps");
  if (objects == nullptr || steps == nullptr)
    return fail(ErrorCode::kInvalidInput, fmt::format("{}: a case has lists of objects and of steps", file));
  BERTH_TRY_VOID(check_kind(objects, LinedValue::Kind::kList, "objects", file));
  BERTH_TRY_VOID(check_kind(steps, LinedValue::Kind::kList, "steps", file));
  BERTH_TRY(options, read_config(root.find("config"), file));
  CasePlayer player(file, std::move(options));
  for (const LinedMember& one : objects->members) BERTH_TRY_VOID(player.create(one.value));
  player.settle();
  Json out = {{"title", root.get("title")}, {"steps", Json::array()}};
  for (const LinedMember& one : steps->members) {
    BERTH_TRY_VOID(play_step(player, one.value, file));
    out["steps"].push_back(player.step(static_cast<int>(out["steps"].size() + 1)));
  }
  return out.dump(1);
}

}  // namespace berth::scenario
