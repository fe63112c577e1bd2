#include "webhook/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "api/job_completions.h"
#include "api/kueue.h"
#include "api/names.h"
#include "api/queue_limits.h"
#include "api/queued_work.h"
#include "api/victim_terms.h"
#include "base/printable.h"
#include "webhook/object.h"
#include "webhook/owners.h"
#include "webhook/pod_checks.h"

namespace berth::webhook {
namespace {

constexpr size_t kToldMax = 10;
constexpr std::string_view kKueueGroup = "kueue.x-k8s.io";

std::string at_label(std::string_view key) { return api::append_key("metadata.labels", key); }
std::string at_annotation(std::string_view key) { return api::append_key("metadata.annotations", key); }

// A label that is to name an object of Kueue's.
void check_name(const Json& object, std::string_view label, Findings& findings) {
  const std::string name = label_of(object, label);
  if (name.empty()) return;
  const std::string wrong = api::check_dns1123_subdomain(name);
  if (!wrong.empty()) findings.invalid.push_back(at_label(label) + ": " + api::invalid_value(printable(name), wrong));
}

bool is_positive_number(const std::string& text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

// Label and annotation of a pod group come together, and the count is one.
void check_group(const Json& pod, Findings& findings) {
  const bool named = !label_of(pod, kGroupLabel).empty(), counted = has_annotation(pod, kGroupCountAnnotation);
  if (named && !counted)
    findings.invalid.push_back(fmt::format("{}: Required value: a pod of a group says how many pods the group has",
                                           at_annotation(kGroupCountAnnotation)));
  if (counted && !named)
    findings.invalid.push_back(
        fmt::format("{}: Required value: a pod that counts its group names it", at_label(kGroupLabel)));
  if (const std::string count = annotation_of(pod, kGroupCountAnnotation); counted && !is_positive_number(count))
    findings.invalid.push_back(at_annotation(kGroupCountAnnotation) + ": " +
                               api::invalid_value(printable(count), "must be a whole number above 0"));
  check_name(pod, kGroupLabel, findings);
}

// What names a queue and does not wait: it is bound, or left to the whole that it belongs to, and Berth does not let
// that wait.
void warn_of_no_quota(const Json& object, Findings& findings) {
  if (label_of(object, kQueueLabel).empty()) return;
  if (!text_of(part_of(object, "spec"), "nodeName").empty())
    findings.warnings.emplace_back("it names a queue and is bound to a node already: it does not wait for quota");
  const std::string whole = whole_of(object);
  if (whole.empty() || is_managed_whole(whole)) return;
  findings.warnings.push_back(fmt::format(
      "{}: it belongs to a {}, which Berth does not let wait: it starts without quota; queue plain Jobs or pods",
      at_label(kQueueLabel), printable(whole, 80)));
}

// What a Job or pod says of how it is queued.
void check_queued(const Json& object, const api::QueuedWork& work, Findings& findings) {
  api::QueuedWork said = work;
  if (const Json* labels = part_of(part_of(object, "metadata"), "labels");
      labels != nullptr && labels->contains(std::string(kMaxExecutionLabel)))
    said.max_execution = label_of(object, kMaxExecutionLabel);
  for (const api::QueuedProblem& problem : api::problems_of(said)) findings.invalid.push_back(to_string(problem));
}

// What a Job says of how many of its pods will do counts where it waits.
api::QueuedWork queued_work_of(const Json& job) {
  api::QueuedWork work;
  if (label_of(job, kQueueLabel).empty()) return work;
  const auto number = [&](const char* key) {
    const Json* spec = part_of(job, "spec");
    const Json value = spec == nullptr ? Json() : spec->value(key, Json());
    return value.is_number_integer() ? value.get<int64_t>() : 1;
  };
  for (const auto& [key, said] : {std::pair(api::kMinParallelismAnnotation, &work.min_parallelism),
                                  std::pair(api::kCompletionsFollowAnnotation, &work.completions_follow)})
    if (has_annotation(job, key)) *said = annotation_of(job, key);
  work.parallelism = number("parallelism");
  work.completions = number("completions");
  work.indexed = text_of(part_of(job, "spec"), "completionMode") == "Indexed";
  return work;
}

void check_plain_pod(const Json& pod, const Rules& rules, Findings& findings) {
  check_pod(pod, "spec", rules, findings);
  check_name(pod, kQueueLabel, findings);
  warn_of_no_quota(pod, findings);
  check_queued(pod, {}, findings);
  check_group(pod, findings);
  const std::string managed = label_of(pod, kManagedLabel);
  if (!managed.empty() && managed != "true")
    findings.invalid.push_back(at_label(kManagedLabel) + ": " +
                               api::invalid_value(printable(managed), "can only be true"));
}

void check_job(const Json& job, const Rules& rules, Findings& findings) {
  if (const Json* pod = part_of(part_of(job, "spec"), "template"))
    check_pod(*pod, "spec.template.spec", rules, findings);
  check_name(job, kQueueLabel, findings);
  warn_of_no_quota(job, findings);
  check_queued(job, queued_work_of(job), findings);
}

// Whether the object has the condition, with the status True.
bool holds(const Json& object, std::string_view type) {
  return std::ranges::any_of(list_of(part_of(object, "status"), "conditions"), [&](const Json& condition) {
    return text_of(condition, "type") == type && text_of(condition, "status") == "True";
  });
}

// A Job that runs, or begins to, does so with the quota of the queue in which it has waited.
void check_queue_change(const Json& job, const Json& before, Findings& findings) {
  if (label_of(job, kQueueLabel) == label_of(before, kQueueLabel)) return;
  if (holds(before, "Complete") || holds(before, "Failed")) return;
  const Json* spec = part_of(job, "spec");
  if (spec != nullptr && spec->value("suspend", Json()) == true) return;
  findings.invalid.push_back(
      fmt::format("{}: cannot be changed while the Job runs; suspend it first", at_label(kQueueLabel)));
}

// Berth lowers it itself where fewer pods were admitted. Source: Kueue's webhook, whose words these are.
void check_parallelism_change(const Json& job, const Json& before, Findings& findings) {
  const Json *spec = part_of(job, "spec"), *spec_before = part_of(before, "spec");
  if (spec == nullptr || spec_before == nullptr || !has_annotation(before, api::kMinParallelismAnnotation)) return;
  if (spec_before->value("suspend", Json()) == true) return;
  if (spec->value("parallelism", Json(1)) != spec_before->value("parallelism", Json(1)))
    findings.invalid.emplace_back(
        "spec.parallelism: Forbidden: cannot change when partial admission is enabled and the job is not suspended");
}

// A pod that has been let in has the quota of the queue in which it has waited.
void check_queue_change_of_pod(const Json& pod, const Json& before, Findings& findings) {
  const auto is_gate = [](const Json& gate) { return text_of(gate, "name") == kAdmissionGate; };
  const std::string phase = text_of(part_of(before, "status"), "phase");
  if (label_of(pod, kQueueLabel) == label_of(before, kQueueLabel) || label_of(before, kManagedLabel) != "true") return;
  if (std::ranges::any_of(list_of(part_of(before, "spec"), "schedulingGates"), is_gate)) return;
  if (phase == "Succeeded" || phase == "Failed") return;
  findings.invalid.push_back(fmt::format("{}: cannot be changed once the pod has been let in", at_label(kQueueLabel)));
}

// What was let in stays what it was let in as, so that its quota and places are those of its pods.
void check_pod_sets_change(const Json& workload, const Json& before, Findings& findings) {
  const auto sets = [](const Json& object) -> const Json& { return list_of(part_of(object, "spec"), "podSets"); };
  if (holds(before, "QuotaReserved") && holds(workload, "QuotaReserved") && sets(workload) != sets(before))
    findings.invalid.emplace_back("spec.podSets: cannot be changed while quota is reserved");
}

// A tree of cohorts has no circle; the smallest one can be seen here.
void check_parent(const Json& cohort, Findings& findings) {
  const std::string name = text_of(part_of(cohort, "metadata"), "name");
  for (const char* key : {"parentName", "parent"})
    if (!name.empty() && text_of(part_of(cohort, "spec"), key) == name)
      findings.invalid.push_back(
          fmt::format("spec.{}: {}", key, api::invalid_value(printable(name), "a cohort cannot be above itself")));
}

void check_kueue(const AdmissionRequest& request, const Json& object, Findings& findings) {
  api::Document document;
  document.api_version = request.group + "/" + request.version;
  document.kind = request.kind;
  if (!api::is_kueue_kind(document)) return;
  api::Problems problems;
  for (const api::Document& each :
       api::read_documents(object.dump(-1, ' ', false, Json::error_handler_t::replace), "", problems)) {
    const auto read = api::decode_kueue(each, problems, true);
    const auto* queue = read ? std::get_if<api::ClusterQueue>(&*read) : nullptr;
    if (std::string idle = queue == nullptr ? "" : api::idle_user_limits(queue->queue); !idle.empty())
      findings.warnings.push_back(std::move(idle));
  }
  for (const api::Problem& problem : problems)
    findings.invalid.push_back(problem.path.empty() ? problem.message : problem.path + ": " + problem.message);
  if (request.kind == "Cohort") check_parent(object, findings);
}

// Of Jobs and queues: what they say of victims, users and budgets, where it cannot be read.
void check_queue_annotations(const AdmissionRequest& request, const Json& object, Findings& findings) {
  const bool is_queue = request.kind == "ClusterQueue" || request.kind == "LocalQueue";
  const Json* all = part_of(part_of(object, "metadata"), "annotations");
  if (all == nullptr || !all->is_object()) return;
  for (const auto& [key, value] : all->items()) {
    if (!value.is_string()) continue;
    const auto& text = value.get_ref<const std::string&>();
    const std::string of_victims = api::victim_annotation_problem(key, text);
    const std::string of_limits = api::queue_limit_problem(key, text);
    const bool closes = is_queue && !of_limits.empty();
    if (!of_victims.empty() || !of_limits.empty())
      findings.warnings.push_back(fmt::format("annotation {}: {}; {}", key, of_victims.empty() ? of_limits : of_victims,
                                              closes ? "until then the queue lets nobody in" : "it has no effect"));
  }
}

// What is wrong with an object alone.
Findings findings_in(const AdmissionRequest& request, const Json& object, const Rules& rules) {
  Findings findings;
  check_queue_annotations(request, object, findings);
  if (request.group.empty() && request.kind == "Pod") check_plain_pod(object, rules, findings);
  else if (request.group == "batch" && request.kind == "Job") check_job(object, rules, findings);
  else if (request.group == kKueueGroup) check_kueue(request, object, findings);
  return findings;
}

// Takes out what was found before, too.
void forget(std::vector<std::string>& now, const std::vector<std::string>& before) {
  std::erase_if(now, [&](const std::string& text) { return std::ranges::find(before, text) != before.end(); });
}

// Whose it is stays as it was written; who brings it into a queue with this update is named by mutate().
void check_user_change(const AdmissionRequest& request, Findings& findings) {
  const std::string user = annotation_of(request.object, api::kUserAnnotation);
  if (user == annotation_of(request.old_object, api::kUserAnnotation)) return;
  if (user == request.user && comes_to_wait(request.object, request.old_object)) return;
  findings.invalid.push_back(
      fmt::format("metadata.annotations[{}]: {}", api::kUserAnnotation,
                  api::invalid_value(printable(user), "who submitted it stays as it was written")));
}

// What an update makes wrong. What was so before is nobody's fault who changes something else: a rule may have come
// later.
Findings findings_in_update(const AdmissionRequest& request, const Rules& rules) {
  Findings findings = findings_in(request, request.object, rules);
  const Findings before = findings_in(request, request.old_object, rules);
  forget(findings.invalid, before.invalid);
  forget(findings.forbidden, before.forbidden);
  forget(findings.warnings, before.warnings);
  if (request.group == "batch" && request.kind == "Job") {
    check_queue_change(request.object, request.old_object, findings);
    check_parallelism_change(request.object, request.old_object, findings);
  }
  if (request.group.empty() && request.kind == "Pod")
    check_queue_change_of_pod(request.object, request.old_object, findings);
  if (request.group == kKueueGroup && request.kind == "Workload")
    check_pod_sets_change(request.object, request.old_object, findings);
  check_user_change(request, findings);
  return findings;
}

// Nothing about the object is new.
bool unchanged(const AdmissionRequest& request) {
  if (request.operation != "UPDATE" || !request.old_object.is_object() || !request.object.is_object()) return false;
  const auto of = [](const Json& object, const char* key) {
    const auto member = object.find(key);
    return member != object.end() ? *member : Json();
  };
  const auto texts = [](const Json& object, const char* key) {
    const Json* found = part_of(part_of(object, "metadata"), key);
    return found != nullptr ? *found : Json::object();
  };
  const auto labels = [&](const Json& object) { return texts(object, "labels"); };
  const auto annotations = [&](const Json& object) { return texts(object, "annotations"); };
  return of(request.object, "spec") == of(request.old_object, "spec") &&
         labels(request.object) == labels(request.old_object) &&
         (request.group != kKueueGroup || annotations(request.object) == annotations(request.old_object)) &&
         annotation_of(request.object, api::kUserAnnotation) == annotation_of(request.old_object, api::kUserAnnotation);
}

std::string joined(std::vector<std::string> texts) {
  const size_t more = texts.size() > kToldMax ? texts.size() - kToldMax : 0;
  texts.resize(texts.size() - more);
  return fmt::format("{}{}", fmt::join(texts, "; "), more > 0 ? fmt::format("; and {} more", more) : "");
}

}  // namespace

AdmissionAnswer validate(const AdmissionRequest& request, const Rules& rules) {
  const bool writes = request.operation == "CREATE" || request.operation == "UPDATE";
  if (!writes || !request.subresource.empty() || unchanged(request)) return {};
  if (!text_of(part_of(request.object, "metadata"), "deletionTimestamp").empty()) return {};
  Findings findings =
      request.operation == "CREATE" ? findings_in(request, request.object, rules) : findings_in_update(request, rules);
  AdmissionAnswer answer;
  if (!findings.invalid.empty()) answer = deny_invalid(joined(std::move(findings.invalid)));
  else if (!findings.forbidden.empty()) answer = deny_forbidden(joined(std::move(findings.forbidden)));
  answer.warnings = std::move(findings.warnings);
  return answer;
}

}  // namespace berth::webhook
