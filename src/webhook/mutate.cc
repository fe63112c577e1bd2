#include "webhook/mutate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/queue_limits.h"
#include "base/printable.h"
#include "webhook/object.h"
#include "webhook/owners.h"

namespace berth::webhook {
namespace {

// Gives a pod spec the scheduler. The API server has put the default name where the user gave none.
void name_scheduler(Json& pod_spec, const Rules& rules, std::vector<std::string>& warnings) {
  const std::string named = text_of(pod_spec, "schedulerName");
  if (named.empty() || named == "default-scheduler") pod_spec["schedulerName"] = rules.scheduler_name;
  else if (named != rules.scheduler_name)
    warnings.push_back(fmt::format("it names a queue and schedulerName {}: {} counts its quota and does not place it",
                                   printable(named, 80), rules.scheduler_name));
}

void mutate_job(Json& job, const Rules& rules, std::vector<std::string>& warnings) {
  if (!job.contains("spec") || !job["spec"].is_object() || !whole_of(job).empty()) return;
  job["spec"]["suspend"] = true;
  const Json* spec = part_of(part_of(job["spec"], "template"), "spec");
  if (spec != nullptr) name_scheduler(job["spec"]["template"]["spec"], rules, warnings);
}

// Appends to a list of the object unless it holds an item that is `equal`.
template <typename Equal>
void append_once(Json& object, const char* list, Json item, Equal equal) {
  if (std::ranges::any_of(list_of(&object, list), equal)) return;
  if (!object.contains(list) || !object[list].is_array()) object[list] = Json::array();
  object[list].push_back(std::move(item));
}

void mutate_pod(Json& pod, const Rules& rules, std::vector<std::string>& warnings) {
  if (!pod.contains("spec") || !pod["spec"].is_object() || !whole_of(pod).empty()) return;
  if (!text_of(pod["spec"], "nodeName").empty()) return;
  append_once(pod["spec"], "schedulingGates", Json{{"name", kAdmissionGate}},
              [](const Json& gate) { return text_of(gate, "name") == kAdmissionGate; });
  pod["metadata"]["labels"][std::string(kManagedLabel)] = "true";
  if (rules.pod_finalizer)
    append_once(pod["metadata"], "finalizers", Json(kManagedLabel),
                [](const Json& finalizer) { return finalizer == kManagedLabel; });
  name_scheduler(pod["spec"], rules, warnings);
}

// Whoever brings it into a queue counts, so that nobody uses up the part of another: also of what says that it is part
// of a whole, which anybody can say.
void name_user(Json& object, const std::string& user) {
  if (user.empty()) return;
  object["metadata"]["annotations"][std::string(api::kUserAnnotation)] = user;
}

}  // namespace

AdmissionAnswer mutate(const AdmissionRequest& request, const Rules& rules) {
  AdmissionAnswer answer;
  const bool creates = request.operation == "CREATE", updates = request.operation == "UPDATE";
  if (!(creates || updates) || !request.subresource.empty()) return answer;
  if (label_of(request.object, kQueueLabel).empty()) return answer;
  if (updates && !comes_to_wait(request.object, request.old_object)) return answer;
  answer.object = request.object;
  name_user(answer.object, request.user);
  if (updates) return answer;  // what else there is may run, and cannot be changed then
  if (request.group == "batch" && request.kind == "Job") mutate_job(answer.object, rules, answer.warnings);
  if (request.group.empty() && request.kind == "Pod") mutate_pod(answer.object, rules, answer.warnings);
  return answer;
}

}  // namespace berth::webhook
