#include "api/controllers.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

// More pods than this from one object of a file are a slip of the pen, and would not fit in memory.
constexpr int32_t kPodsOfOneObjectMax = 1'000'000;

void read_count(const Reader& reader, int32_t& out) {
  if (!reader.read(out) || !reader.strict()) return;
  if (out < 0) reader.problem(invalid_value(std::to_string(out), "must be greater than or equal to 0"));
  if (out > kPodsOfOneObjectMax)
    reader.problem(invalid_value(std::to_string(out), "Berth reads at most 1000000 pods of one object"));
}
void read_count(const Reader& reader, std::optional<int32_t>& out) {
  int32_t count = 0;
  read_count(reader, count);
  out = count;
}

template <typename T>
struct Spec {
  T* object;
  model::LabelSelector selector;  // checked against the template once the whole spec is read
};

template <typename T>
void read_template(const Reader& reader, Spec<T>& spec) {
  read_pod_template(reader, spec.object->pod_template);
}
template <typename T>
void read_replicas(const Reader& reader, Spec<T>& spec) {
  read_count(reader, spec.object->replicas);
}
template <typename T>
void read_spec_selector(const Reader& reader, Spec<T>& spec) {
  read_label_selector(reader, spec.selector);
}

constexpr Field<Spec<Deployment>> kDeploymentSpec[] = {
    {"replicas", &read_replicas},
    {"selector", &read_spec_selector},
    {"template", &read_template},
    {"strategy"},
    {"minReadySeconds"},
    {"revisionHistoryLimit"},
    {"paused"},
    {"progressDeadlineSeconds"},
};
constexpr Field<Spec<ReplicaSet>> kReplicaSetSpec[] = {
    {"replicas", &read_replicas},
    {"minReadySeconds"},
    {"selector", &read_spec_selector},
    {"template", &read_template},
};
constexpr Field<int32_t> kOrdinals[] = {{"start", [](const Reader& r, int32_t& start) { read_count(r, start); }}};
constexpr Field<Spec<StatefulSet>> kStatefulSetSpec[] = {
    {"replicas", &read_replicas},
    {"selector", &read_spec_selector},
    {"template", &read_template},
    {"volumeClaimTemplates",
     [](const Reader& r, Spec<StatefulSet>& s) {
       read_list<PersistentVolumeClaim>(r, s.object->claim_templates, &read_value);
     }},
    {"serviceName"},
    {"podManagementPolicy"},
    {"updateStrategy"},
    {"revisionHistoryLimit"},
    {"minReadySeconds"},
    {"persistentVolumeClaimRetentionPolicy"},
    {"ordinals", [](const Reader& r, Spec<StatefulSet>& s) { read_object(r, kOrdinals, s.object->ordinals_start); }},
};
constexpr Field<Spec<DaemonSet>> kDaemonSetSpec[] = {
    {"selector", &read_spec_selector}, {"template", &read_template}, {"updateStrategy"}, {"minReadySeconds"},
    {"revisionHistoryLimit"},
};

void read_completion_mode(const Reader& reader, Job& out) {
  std::string_view text;
  if (!reader.read(text)) return;
  if (text != "Indexed" && text != "NonIndexed") reader.problem(unsupported_value(text, {"Indexed", "NonIndexed"}));
  out.indexed = text == "Indexed";
}

void read_job_deadline(const Reader& reader, Job& out) {
  if (reader.read(out.active_deadline_s) && reader.strict() && *out.active_deadline_s < 0)
    reader.problem(invalid_value(std::to_string(*out.active_deadline_s), "must be greater than or equal to 0"));
}

void read_limit(const Reader& reader, std::optional<int32_t>& out) {
  if (reader.read(out) && reader.strict() && *out < 0)
    reader.problem(invalid_value(std::to_string(*out), "must be greater than or equal to 0"));
}

void read_limit_per_index(const Reader& reader, Job& out) {
  std::optional<int32_t> limit;
  read_limit(reader, limit);
  out.has_backoff_limit_per_index = limit.has_value();
}

constexpr Field<Job> kJobSpec[] = {
    {"parallelism", [](const Reader& r, Job& j) { read_count(r, j.parallelism); }},
    {"completions", [](const Reader& r, Job& j) { read_count(r, j.completions); }},
    {"activeDeadlineSeconds", &read_job_deadline},
    {"podFailurePolicy"},
    {"successPolicy"},
    {"backoffLimit", [](const Reader& r, Job& j) { read_limit(r, j.backoff_limit); }},
    {"backoffLimitPerIndex", &read_limit_per_index},
    {"maxFailedIndexes"},
    {"selector"},
    {"manualSelector"},
    {"template", [](const Reader& r, Job& j) { read_pod_template(r, j.pod_template); }},
    {"ttlSecondsAfterFinished"},
    {"completionMode", &read_completion_mode},
    {"suspend", [](const Reader& r, Job& j) { r.read(j.suspend); }},
    {"podReplacementPolicy"},
    {"managedBy"},
};
constexpr Field<Job> kJobStatus[] = {
    {"conditions"},
    {"startTime"},
    {"completionTime"},
    {"active", [](const Reader& r, Job& j) { r.read(j.active); }},
    {"succeeded", [](const Reader& r, Job& j) { r.read(j.succeeded); }},
    {"ready", [](const Reader& r, Job& j) { r.read(j.ready); }},
    {"failed", [](const Reader& r, Job& j) { r.read(j.failed); }},
    {"terminating"},
    {"completedIndexes"},
    {"failedIndexes"},
    {"uncountedTerminatedPods"},
};

// Below the spec of what makes pods.
constexpr std::string_view kRestartPolicy[] = {"template", "spec", "restartPolicy"};

void check_job(const Reader& spec, const Job& job) {
  if (!spec.strict()) return;
  if (job.pod_template.spec.restart_policy == "Always" && spec.sound(kRestartPolicy))
    spec.problem_below(kRestartPolicy,
                       required_value("valid values: \"OnFailure\", \"Never\"; the pods of a Job must be able to end"));
  if (job.indexed && !job.completions && has_member(spec, "parallelism") && spec.sound("completions"))
    spec.problem_at("completions", required_value("when completion mode is Indexed"));
  if (job.has_backoff_limit_per_index && !job.indexed && spec.sound("completionMode"))
    spec.problem_at("backoffLimitPerIndex", "Invalid value: requires indexed completion mode");
}

void read_job_spec(const Reader& reader, Job& out) {
  bool has_template = false;
  read_object(reader, kJobSpec, out);
  for (Members members(reader); members.next();) has_template |= members.key() == "template";
  if (!reader.strict()) return;
  if (has_template) check_job(reader, out);
  else if (reader.sound("template")) reader.problem_at("template", required_value("the pods to run"));
}

constexpr Field<Job> kJob[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, Job& j) { read_object_meta(r, j.metadata); }},
    {"spec", &read_job_spec},
    {"status", [](const Reader& r, Job& j) { read_object(r, kJobStatus, j); }},
};

constexpr Field<Job> kJobTemplate[] = {
    {"metadata", [](const Reader& r, Job& j) { read_object_meta(r, j.metadata); }},
    {"spec", &read_job_spec},
};
constexpr Field<CronJob> kCronJobSpec[] = {
    {"schedule", [](const Reader& r, CronJob& c) { r.read(c.schedule); }},
    {"timeZone"},
    {"startingDeadlineSeconds"},
    {"concurrencyPolicy"},
    {"suspend", [](const Reader& r, CronJob& c) { r.read(c.suspend); }},
    {"jobTemplate", [](const Reader& r, CronJob& c) { read_object(r, kJobTemplate, c.job_template); }},
    {"successfulJobsHistoryLimit"},
    {"failedJobsHistoryLimit"},
};
constexpr Field<CronJob> kCronJob[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, CronJob& c) { read_object_meta(r, c.metadata); }},
    {"spec", [](const Reader& r, CronJob& c) { read_object(r, kCronJobSpec, c); }},
    {"status"},
};

// The requirements of a selector that could be read, by its reader: those of matchLabels come first.
std::vector<model::NodeSelectorRequirement> sound_requirements(const Reader& selector,
                                                               const model::LabelSelector& all) {
  std::vector<bool> expressions;  // sound
  for (Members members(selector); members.next();)
    if (members.key() == "matchExpressions")
      for (Items items(members.value()); items.next();)
        expressions.push_back(items.value().sound("key") && items.value().sound("operator") &&
                              items.value().sound("values"));
  const size_t labels = all.requirements.size() - std::min(all.requirements.size(), expressions.size());
  std::vector<model::NodeSelectorRequirement> out;
  for (size_t i = 0; i < all.requirements.size(); ++i) {
    const model::NodeSelectorRequirement& each = all.requirements[i];
    if (i < labels ? selector.sound({"matchLabels", each.key}) : expressions[i - labels]) out.push_back(each);
  }
  return out;
}

void check_selector(const Reader& spec, const model::LabelSelector& selector, const PodTemplate& pod_template) {
  if (selector.requirements.empty() && spec.sound("selector"))
    return spec.problem_at("selector", required_value("give matchLabels that the template's labels have"));
  if (!has_member(spec, "template")) return;
  std::vector<std::string> wrong;
  for (Members members(spec); members.next();) {
    if (members.key() != "selector") continue;
    for (const model::NodeSelectorRequirement& wanted : sound_requirements(members.value(), selector)) {
      if (wanted.matches(pod_template.metadata.labels.find(wanted.key))) continue;
      if (!spec.sound({"template", "metadata", "labels", wanted.key})) continue;
      const bool equal = wanted.op == model::NodeSelectorOperator::kIn && wanted.values.size() == 1;
      wrong.push_back(equal ? fmt::format("{}={} is missing; add it", wanted.key, wanted.values[0])
                            : fmt::format("it wants {}", to_string(wanted)));
    }
  }
  for (const std::string& why : wrong)
    spec.problem_below({"template", "metadata", "labels"}, "`selector` does not match template `labels`: " + why);
}

constexpr std::string_view kDeadline[] = {"template", "spec", "activeDeadlineSeconds"};

void check_controller(const Reader& spec, const model::LabelSelector& selector, const PodTemplate& pod_template) {
  const bool pods_may_end = pod_template.spec.restart_policy != "Always";
  if (!has_member(spec, "template") && spec.sound("template"))
    spec.problem_at("template", required_value("the pods to run"));
  if (pods_may_end && spec.sound(kRestartPolicy))
    spec.problem_below(kRestartPolicy, unsupported_value(pod_template.spec.restart_policy, {"Always"}));
  if (pod_template.spec.active_deadline_s)
    spec.problem_below(kDeadline, "Forbidden: pods that run for good have none; remove it, or make it a Job");
  check_selector(spec, selector, pod_template);
}

// The spec of a kind with a selector, by its table.
template <typename T, size_t N>
void read_controller_spec(const Reader& reader, const Field<Spec<T>> (&fields)[N], T& out) {
  Spec<T> spec{&out, {}};
  read_object(reader, fields, spec);
  if (reader.strict()) check_controller(reader, spec.selector, out.pod_template);
}

constexpr Field<Deployment> kDeployment[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, Deployment& d) { read_object_meta(r, d.metadata); }},
    {"spec", [](const Reader& r, Deployment& d) { read_controller_spec(r, kDeploymentSpec, d); }},
    {"status"},
};
constexpr Field<ReplicaSet> kReplicaSet[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, ReplicaSet& s) { read_object_meta(r, s.metadata); }},
    {"spec", [](const Reader& r, ReplicaSet& s) { read_controller_spec(r, kReplicaSetSpec, s); }},
    {"status"},
};
constexpr Field<StatefulSet> kStatefulSet[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, StatefulSet& s) { read_object_meta(r, s.metadata); }},
    {"spec", [](const Reader& r, StatefulSet& s) { read_controller_spec(r, kStatefulSetSpec, s); }},
    {"status"},
};
constexpr Field<DaemonSet> kDaemonSet[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, DaemonSet& d) { read_object_meta(r, d.metadata); }},
    {"spec", [](const Reader& r, DaemonSet& d) { read_controller_spec(r, kDaemonSetSpec, d); }},
    {"status"},
};

template <typename T, size_t N>
void read_whole(const Reader& reader, const Field<T> (&fields)[N], T& out,
                NameCheck check_name = &check_dns1123_subdomain) {
  read_object(reader, fields, out);
  check_object_meta(reader, out.metadata, check_name);
  require_spec(reader);
}

}  // namespace

std::vector<std::string_view> workload_spec_fields(std::string_view kind) {
  if (kind == "Job") return names_of(kJobSpec);
  if (kind == "CronJob") return names_of(kCronJobSpec);
  if (kind == "Deployment") return names_of(kDeploymentSpec);
  if (kind == "ReplicaSet") return names_of(kReplicaSetSpec);
  if (kind == "StatefulSet") return names_of(kStatefulSetSpec);
  if (kind == "DaemonSet") return names_of(kDaemonSetSpec);
  return {};
}

void read_value(const Reader& reader, Job& out) { read_whole(reader, kJob, out); }
void read_value(const Reader& reader, CronJob& out) { read_whole(reader, kCronJob, out); }
void read_value(const Reader& reader, Deployment& out) { read_whole(reader, kDeployment, out); }
void read_value(const Reader& reader, ReplicaSet& out) { read_whole(reader, kReplicaSet, out); }
void read_value(const Reader& reader, StatefulSet& out) { read_whole(reader, kStatefulSet, out, &check_dns1123_label); }
void read_value(const Reader& reader, DaemonSet& out) { read_whole(reader, kDaemonSet, out); }

}  // namespace berth::api
