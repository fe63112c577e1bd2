// Queues and Jobs in a scenario, in short: what stands there becomes ordinary manifests.
//
//   cluster:
//     flavors: {h100: {gpu: h100}}          # node labels of a flavor; one that is only named has none
//     queues:
//       red: {quota: {h100: 8}, cohort: all, preemption: {reclaimWithinCohort: Any}}
//       blue: {quota: {h100: {nominal: 8, borrowing: 4, lending: 2}}}
//     cohorts: {all: {quota: {h100: 4}, parent: org}}
//     checks: {budget: example.com/budget}   # AdmissionChecks and their controllers
//   steps:
//     - job: {name: train, queue: red, pods: 2, gpus: 4, priority: 10, runtime: 1h}
//
// Quota is of nvidia.com/gpu; each ClusterQueue has a LocalQueue of its name in the namespace default. Other members of
// a queue are those of its spec.
#include <fmt/format.h>

#include <algorithm>

#include "api/kueue_names.h"
#include "api/queue_limits.h"
#include "api/runtime_estimate.h"
#include "api/victim_terms.h"
#include "bridge/gpus.h"
#include "scenario/manifests.h"
#include "scenario/scenario_player.h"

namespace berth::scenario {
namespace {

using Kind = LinedValue::Kind;

constexpr std::string_view kApi = "kueue.x-k8s.io/v1beta2";

std::string json_of(const LinedValue& value) { return to_document(value, "").json; }

// Quota by flavor as resourceGroups.
std::string groups_of(const LinedValue& quota) {
  std::string flavors;
  for (const auto& [flavor, amount] : quota.members) {
    const bool limited = amount.kind == Kind::kMap;
    std::string limits;
    if (limited && amount.find("borrowing") != nullptr)
      limits += fmt::format(", borrowingLimit: {}", amount.get("borrowing"));
    if (limited && amount.find("lending") != nullptr)
      limits += fmt::format(", lendingLimit: {}", amount.get("lending"));
    flavors +=
        fmt::format("{}{{name: {}, resources: [{{name: nvidia.com/gpu, nominalQuota: {}{}}}]}}",
                    flavors.empty() ? "" : ", ", flavor, limited ? amount.get("nominal", "0") : amount.text, limits);
  }
  return fmt::format("[{{coveredResources: [nvidia.com/gpu], flavors: [{}]}}]", flavors);
}

std::string flavor_text(const std::string& name, const LinedValue* labels) {
  return fmt::format("---\napiVersion: {}\nkind: ResourceFlavor\nmetadata: {{name: {}}}\nspec: {}\n", kApi, name,
                     labels == nullptr ? "{}" : fmt::format("{{nodeLabels: {}}}", json_of(*labels)));
}

// Checks of a queue: a list of names, or the flavors that each is for.
std::string rules_of(const LinedValue& checks) {
  std::string out;
  for (const auto& [name, value] : checks.members) {
    if (checks.kind == Kind::kList) out += fmt::format("{}{{name: {}}}", out.empty() ? "" : ", ", value.text);
    else out += fmt::format("{}{{name: {}, onFlavors: {}}}", out.empty() ? "" : ", ", name, json_of(value));
  }
  return out;
}

std::string check_text(const std::string& name, const LinedValue& check) {
  const bool plain = check.kind != Kind::kMap;
  const std::string active = plain ? "" : check.get("active");
  return fmt::format(
      "---\napiVersion: {}\nkind: AdmissionCheck\nmetadata: {{name: {}}}\nspec: {{controllerName: {}}}\n{}", kApi, name,
      plain ? check.text : check.get("controller"),
      active == "false" ? "status: {conditions: [{type: Active, status: \"False\", reason: Down, message: down}]}\n"
                        : "");
}

std::string queue_text(const std::string& name, const LinedValue& queue) {
  std::string spec = "namespaceSelector: {}", annotations = "{}";
  for (const auto& [key, value] : queue.members) {
    if (key == "annotations") annotations = json_of(value);
    else if (key == "quota") spec += ", resourceGroups: " + groups_of(value);
    else if (key == "cohort") spec += ", cohortName: " + value.text;
    else if (key == "checks")
      spec += fmt::format(", admissionChecksStrategy: {{admissionChecks: [{}]}}", rules_of(value));
    else spec += fmt::format(", {}: {}", key, json_of(value));
  }
  return fmt::format(
      "---\napiVersion: {0}\nkind: ClusterQueue\nmetadata: {{name: {1}, annotations: {3}}}\nspec: {{{2}}}\n"
      "---\napiVersion: {0}\nkind: LocalQueue\nmetadata: {{name: {1}}}\nspec: {{clusterQueue: {1}}}\n",
      kApi, name, spec, annotations);
}

std::string cohort_text(const std::string& name, const LinedValue& cohort) {
  std::string spec;
  for (const auto& [key, value] : cohort.members) {
    spec += spec.empty() ? "" : ", ";
    if (key == "quota") spec += "resourceGroups: " + groups_of(value);
    else if (key == "parent") spec += "parentName: " + value.text;
    else spec += fmt::format("{}: {}", key, json_of(value));
  }
  return fmt::format("---\napiVersion: {}\nkind: Cohort\nmetadata: {{name: {}}}\nspec: {{{}}}\n", kApi, name, spec);
}

}  // namespace

// `what` holds flavors, cohorts, queues and checks.
void ScenarioPlayer::add_queues(const LinedValue& what) {
  std::string text;
  const LinedValue* flavors = what.find("flavors");
  const auto name_flavors = [&](const LinedValue& owner) {
    const LinedValue* quota = owner.find("quota");
    for (size_t i = 0; quota != nullptr && i < quota->members.size(); ++i) {
      const std::string& name = quota->members[i].name;
      const bool declared = flavors != nullptr && flavors->find(name) != nullptr;
      if (declared || !flavors_named_.insert(name).second) continue;
      text += flavor_text(name, nullptr);
    }
  };
  const auto is_new = [&](const std::string& name, const LinedValue& at, std::string_view kind) {
    if (queues_named_.emplace(kind, name).second) return true;
    mismatch(at, fmt::format("there is a {} '{}' already; change it with `update`", kind, name));
    return false;
  };
  for (size_t i = 0; flavors != nullptr && i < flavors->members.size(); ++i)
    text += flavor_text(flavors->members[i].name, &flavors->members[i].value);
  if (const LinedValue* checks = what.find("checks"))
    for (const auto& [name, check] : checks->members) text += check_text(name, check);
  if (const LinedValue* cohorts = what.find("cohorts"))
    for (const auto& [name, cohort] : cohorts->members) {
      if (!is_new(name, cohort, "Cohort")) return;
      name_flavors(cohort);
      text += cohort_text(name, cohort);
    }
  if (const LinedValue* queues = what.find("queues"))
    for (const auto& [name, queue] : queues->members) {
      if (!is_new(name, queue, "ClusterQueue")) return;
      name_flavors(queue);
      text += queue_text(name, queue);
    }
  if (!text.empty()) submit({Kind::kString, what.line, text, {}});
}

namespace {

std::string share_annotation(const std::string& share) {
  if (share.empty()) return "";
  const bool by_memory = share.find_first_not_of("0123456789.") != std::string::npos;
  return fmt::format("{}: \"{}\"", by_memory ? bridge::kGpuMemoryAnnotation : bridge::kGpuFractionAnnotation, share);
}

}  // namespace

// {name, queue, pods, gpus, share, priority, runtime, completions, least, selector, grace, max_execution, estimate,
// ready, checkpoints, pod_labels, preemptible, user}: so many pods at a time, of so many GPUs each, or of a share of
// one (0.5 or 10Gi); with `least` fewer will do.
void ScenarioPlayer::add_job(const LinedValue& what) {
  static constexpr std::string_view kFields[] = {
      "name",     "queue", "pods",          "gpus",     "share", "priority",    "runtime",    "completions", "least",
      "selector", "grace", "max_execution", "estimate", "ready", "checkpoints", "pod_labels", "preemptible", "user"};
  static constexpr std::pair<std::string_view, std::string_view> kAnnotations[] = {
      {"runtime", kSimulatedRuntime},
      {"estimate", api::kRuntimeEstimateAnnotation},
      {"checkpoints", api::kCheckpointIntervalAnnotation},
      {"ready", kSimulatedReady},
      {"least", api::kMinParallelismAnnotation},
      {"user", api::kUserAnnotation}};
  for (const auto& [key, value] : what.members)
    if (std::find(std::begin(kFields), std::end(kFields), key) == std::end(kFields))
      return mismatch(value, fmt::format("'{}' says nothing about a job", key));
  std::string text, labels, annotations, pod;
  const std::string priority = what.get("priority");
  if (!priority.empty()) {
    if (!priorities_named_.contains(priority))
      text += fmt::format(
          "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: p{0}}}\nvalue: {0}\n---\n",
          priority);
    priorities_named_.insert(priority);
    pod += fmt::format("priorityClassName: p{}, ", priority);
  }
  if (const std::string queue = what.get("queue"); !queue.empty())
    labels += fmt::format("kueue.x-k8s.io/queue-name: {}, ", queue);
  if (const LinedValue* limit = what.find("max_execution")) {
    const auto duration = parse_duration(limit->text);
    if (!duration) return mismatch(*limit, duration.error().message);
    labels +=
        fmt::format("kueue.x-k8s.io/max-exec-time-seconds: \"{}\", ", duration->nanos / Duration::seconds(1).nanos);
  }
  for (const auto& [key, annotation] : kAnnotations)
    if (what.find(key) != nullptr) annotations += fmt::format("{}: \"{}\", ", annotation, what.get(key));
  if (const LinedValue* selector = what.find("selector")) pod += fmt::format("nodeSelector: {}, ", json_of(*selector));
  if (what.find("grace") != nullptr) pod += fmt::format("terminationGracePeriodSeconds: {}, ", what.get("grace"));
  const LinedValue* pod_labels = what.find("pod_labels");
  const std::string share = what.get("share");
  const std::string of_pods = fmt::format(
      "labels: {}, annotations: {{{}{}}}", pod_labels == nullptr ? "{}" : json_of(*pod_labels),
      what.get("preemptible") == "false" ? "berth.dev/preemptible: \"false\", " : "", share_annotation(share));
  const std::string pods = what.get("pods", "1");
  text += fmt::format(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {}, labels: {{{}}}, annotations: {{{}}}}}\n"
      "spec: {{parallelism: {}, completions: {}, template: {{metadata: {{{}}}, spec: {{{}restartPolicy: Never, "
      "containers: [{{name: main, image: app, resources: {{limits: {{{}}}}}}}]}}}}}}\n",
      what.get("name"), labels, annotations, pods, what.get("completions", pods), of_pods, pod,
      share.empty() ? "nvidia.com/gpu: " + what.get("gpus", "1") : "");
  submit({Kind::kString, what.line, text, {}});
}

// {job: {check: Ready}}, or {state: Retry, after: 1m, message: …} in the state's place.
void ScenarioPlayer::report_checks(const LinedValue& what) {
  static constexpr std::pair<std::string_view, quota::CheckState> kStates[] = {
      {"Pending", quota::CheckState::kPending},
      {"Ready", quota::CheckState::kReady},
      {"Retry", quota::CheckState::kRetry},
      {"Rejected", quota::CheckState::kRejected}};
  for (const LinedMember& job : what.members)
    for (const auto& [check, value] : job.value.members) {
      const std::string state = value.kind == Kind::kMap ? value.get("state") : value.text;
      const auto* known = std::ranges::find(kStates, state, [](const auto& entry) { return entry.first; });
      if (known == std::end(kStates)) {
        mismatch(value, fmt::format("'{}' is none of Pending, Ready, Retry, Rejected", state));
        continue;
      }
      quota::CheckReport report{check, known->second};
      if (value.kind == Kind::kMap) report.message = value.get("message");
      if (const LinedValue* after = value.find("after")) {
        const auto duration = parse_duration(after->text);
        if (!duration) return mismatch(*after, duration.error().message);
        report.requeue_after = *duration;
      }
      require(cluster_.report_check(job.name, std::move(report)), value);
    }
}

}  // namespace berth::scenario
