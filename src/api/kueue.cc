#include "api/kueue.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/decoders.h"
#include "api/kueue_checks.h"
#include "api/kueue_groups.h"
#include "api/kueue_names.h"
#include "api/names.h"
#include "api/queue_limits.h"
#include "api/queue_usage.h"
#include "api/topology_request.h"
#include "api/victim_terms.h"
#include "model/quantity.h"

namespace berth::api {
namespace {

// A word of an enumeration with what it means.
template <typename T>
struct Word {
  std::string_view text;
  T value;
};

template <typename T, size_t N>
void read_word(const Reader& reader, const Word<T> (&words)[N], T& out) {
  std::string_view text;
  if (!reader.read(text)) return;
  std::vector<std::string_view> known;
  for (const Word<T>& word : words) {
    if (word.text == text) {
      out = word.value;
      return;
    }
    known.push_back(word.text);
  }
  reader.problem(unsupported_value(text, known));
}

constexpr Word<model::PreemptionPolicy> kWithin[] = {
    {"Never", model::PreemptionPolicy::kNever},
    {"LowerPriority", model::PreemptionPolicy::kLowerPriority},
    {"LowerOrNewerEqualPriority", model::PreemptionPolicy::kLowerOrNewerEqualPriority},
};
constexpr Word<model::PreemptionPolicy> kReclaim[] = {
    {"Never", model::PreemptionPolicy::kNever},
    {"LowerPriority", model::PreemptionPolicy::kLowerPriority},
    {"Any", model::PreemptionPolicy::kAny},
};
constexpr Word<bool> kBorrowPolicy[] = {{"Never", false}, {"LowerPriority", true}};
constexpr Word<bool> kNextFlavor[] = {
    {"TryNextFlavor", true}, {"MayStopSearch", false}, {"Borrow", false}, {"Preempt", false}};
constexpr Word<bool> kPreference[] = {{"BorrowingOverPreemption", false}, {"PreemptionOverBorrowing", true}};
constexpr Word<model::StopPolicy> kStop[] = {{"None", model::StopPolicy::kNone},
                                             {"Hold", model::StopPolicy::kHold},
                                             {"HoldAndDrain", model::StopPolicy::kHoldAndDrain}};
constexpr Word<model::QueueingStrategy> kStrategy[] = {{"BestEffortFIFO", model::QueueingStrategy::kBestEffortFifo},
                                                       {"StrictFIFO", model::QueueingStrategy::kStrictFifo}};

constexpr Field<model::QueuePreemption> kBorrowWithin[] = {
    {"policy", [](const Reader& r, model::QueuePreemption& p) { read_word(r, kBorrowPolicy, p.borrow_within_cohort); }},
    {"maxPriorityThreshold", [](const Reader& r, model::QueuePreemption& p) { r.read(p.borrow_threshold); }},
};
constexpr Field<model::QueuePreemption> kPreemption[] = {
    {"reclaimWithinCohort",
     [](const Reader& r, model::QueuePreemption& p) { read_word(r, kReclaim, p.reclaim_within_cohort); }},
    {"borrowWithinCohort", [](const Reader& r, model::QueuePreemption& p) { read_object(r, kBorrowWithin, p); }},
    {"withinClusterQueue", [](const Reader& r, model::QueuePreemption& p) { read_word(r, kWithin, p.within_queue); }},
};

constexpr Field<model::FlavorFungibility> kFungibility[] = {
    {"whenCanBorrow",
     [](const Reader& r, model::FlavorFungibility& f) { read_word(r, kNextFlavor, f.try_next_before_borrowing); }},
    {"whenCanPreempt",
     [](const Reader& r, model::FlavorFungibility& f) { read_word(r, kNextFlavor, f.try_next_before_preempting); }},
    {"preference",
     [](const Reader& r, model::FlavorFungibility& f) { read_word(r, kPreference, f.preemption_over_borrowing); }},
};

void read_weight(const Reader& reader, int64_t& out) {
  std::string text;
  if (!reader.read_string_or_number(text)) return;
  const Result<int64_t> weight = model::parse_quantity(text, 3);
  if (weight && *weight >= 0) out = *weight;
  else reader.problem(invalid_value(text, "must be a quantity of at least 0"));
}
constexpr Field<int64_t> kFairSharing[] = {{"weight", &read_weight}};

constexpr Word<bool> kAdmissionMode[] = {{"UsageBasedAdmissionFairSharing", true}, {"NoAdmissionFairSharing", false}};
constexpr Field<model::ClusterQueue> kAdmissionScope[] = {
    {"admissionMode", [](const Reader& r, model::ClusterQueue& q) { read_word(r, kAdmissionMode, q.usage_based); }},
};

constexpr Field<model::ClusterQueue> kQueueSpec[] = {
    {"resourceGroups", [](const Reader& r, model::ClusterQueue& q) { read_groups(r, q.groups); }},
    {"cohortName", [](const Reader& r, model::ClusterQueue& q) { r.read(q.cohort); }},
    {"cohort", [](const Reader& r, model::ClusterQueue& q) { r.read(q.cohort); }},
    {"queueingStrategy", [](const Reader& r, model::ClusterQueue& q) { read_word(r, kStrategy, q.strategy); }},
    {"namespaceSelector",
     [](const Reader& r, model::ClusterQueue& q) {
       q.namespaces.selects_nothing = false;
       read_label_selector(r, q.namespaces);
     }},
    {"flavorFungibility", [](const Reader& r, model::ClusterQueue& q) { read_object(r, kFungibility, q.fungibility); }},
    {"preemption",
     [](const Reader& r, model::ClusterQueue& q) {
       read_object(r, kPreemption, q.preemption);
       const bool reclaims = q.preemption.reclaim_within_cohort != model::PreemptionPolicy::kNever;
       if (r.strict() && q.preemption.borrow_within_cohort && !reclaims)
         r.contradiction("Invalid value: borrowWithinCohort needs a reclaimWithinCohort other than Never");
     }},
    {"admissionChecks", [](const Reader& r, model::ClusterQueue& q) { read_check_names(r, q.checks); }},
    {"admissionChecksStrategy", [](const Reader& r, model::ClusterQueue& q) { read_check_strategy(r, q.checks); }},
    {"stopPolicy", [](const Reader& r, model::ClusterQueue& q) { read_word(r, kStop, q.stop); }},
    {"fairSharing", [](const Reader& r, model::ClusterQueue& q) { read_object(r, kFairSharing, q.fair_weight); }},
    {"admissionScope", [](const Reader& r, model::ClusterQueue& q) { read_object(r, kAdmissionScope, q); }},
    {"concurrentAdmissionPolicy"},
};

constexpr Field<model::Cohort> kCohortSpec[] = {
    {"parentName", [](const Reader& r, model::Cohort& c) { r.read(c.parent); }},
    {"parent", [](const Reader& r, model::Cohort& c) { r.read(c.parent); }},
    {"resourceGroups", [](const Reader& r, model::Cohort& c) { read_groups(r, c.groups); }},
    {"fairSharing", [](const Reader& r, model::Cohort& c) { read_object(r, kFairSharing, c.fair_weight); }},
};

constexpr Field<model::LocalQueue> kLocalQueueSpec[] = {
    {"clusterQueue", [](const Reader& r, model::LocalQueue& q) { r.read(q.cluster_queue); }},
    {"stopPolicy", [](const Reader& r, model::LocalQueue& q) { read_word(r, kStop, q.stop); }},
    {"fairSharing", [](const Reader& r, model::LocalQueue& q) { read_object(r, kFairSharing, q.fair_weight); }},
};

constexpr Field<model::ResourceFlavor> kFlavorSpec[] = {
    {"nodeLabels", [](const Reader& r, model::ResourceFlavor& f) { read_label_map(r, f.node_labels); }},
    {"nodeTaints", [](const Reader& r, model::ResourceFlavor& f) { read_list(r, f.node_taints, &read_taint); }},
    {"tolerations", [](const Reader& r, model::ResourceFlavor& f) { read_list(r, f.tolerations, &read_toleration); }},
    {"topologyName"},
    {"resourceWeights"},
};

constexpr Field<WorkloadPodSet> kPodSet[] = {
    {"name", [](const Reader& r, WorkloadPodSet& s) { r.read(s.name); }},
    {"template", [](const Reader& r, WorkloadPodSet& s) { read_pod_template(r, s.pod_template); }},
    {"count", [](const Reader& r, WorkloadPodSet& s) { r.read(s.count); }},
    {"minCount", [](const Reader& r, WorkloadPodSet& s) { r.read(s.min_count); }},
    {"topologyRequest"},
};

// The same as the annotations of the template, from which Kueue makes it.
void read_topology_request(const Reader& request, ObjectMeta& metadata) {
  const auto read = [&](const char* member, std::string_view annotation) {
    with_member(request, member, [&](const Reader& r) {
      std::string key;
      if (r.read(key) && metadata.annotation(annotation) == nullptr)
        metadata.annotations.set(std::string(annotation), key);
    });
  };
  read("required", kRequiredTopologyAnnotation);
  read("preferred", kPreferredTopologyAnnotation);
  read("podSetSliceRequiredTopology", kSliceTopologyAnnotation);
  read("podSetGroupName", kSetGroupAnnotation);
  with_member(request, "podSetSliceSize", [&](const Reader& r) {
    int32_t size = 0;
    if (r.read(size) && metadata.annotation(kSliceSizeAnnotation) == nullptr)
      metadata.annotations.set(std::string(kSliceSizeAnnotation), std::to_string(size));
  });
  with_member(request, "podsetSliceRequiredTopologyConstraints", [&](const Reader& r) {
    std::vector<model::SliceLayer> layers;
    read_slice_layers(r, layers);
    if (!layers.empty() && metadata.annotation(kSliceLayersAnnotation) == nullptr)
      metadata.annotations.set(std::string(kSliceLayersAnnotation), to_annotation(layers));
  });
}

void read_pod_set(const Reader& reader, WorkloadPodSet& out) {
  read_object(reader, kPodSet, out);
  with_member(reader, "topologyRequest", [&](const Reader& r) { read_topology_request(r, out.pod_template.metadata); });
  if (out.count < 0) reader.problem_at("count", "Invalid value: must be greater than or equal to 0");
  if (out.min_count && (*out.min_count <= 0 || *out.min_count > out.count))
    reader.problem_at("minCount", "Invalid value: minCount should be positive and less or equal to count");
}

void read_max_execution(const Reader& reader, Workload& out) {
  int32_t seconds = 0;
  if (reader.is_null() || !reader.read(seconds)) return;
  if (seconds < 1)
    return reader.problem(invalid_value(std::to_string(seconds), "should be greater than or equal to 1"));
  out.max_execution_s = seconds;
}

constexpr Field<Workload> kWorkloadSpec[] = {
    {"podSets", [](const Reader& r, Workload& w) { read_list(r, w.pod_sets, &read_pod_set); }},
    {"queueName", [](const Reader& r, Workload& w) { r.read(w.queue_name); }},
    {"priorityClassRef"},
    {"priorityClassName"},
    {"priority", [](const Reader& r, Workload& w) { r.read(w.priority); }},
    {"priorityClassSource"},
    {"active", [](const Reader& r, Workload& w) { r.read(w.active); }},
    {"maximumExecutionTimeSeconds", &read_max_execution},
};

struct ReclaimablePods {
  std::string name;
  int32_t count = 0;
};
constexpr Field<ReclaimablePods> kReclaimable[] = {
    {"name", [](const Reader& r, ReclaimablePods& p) { r.read(p.name); }},
    {"count", [](const Reader& r, ReclaimablePods& p) { r.read(p.count); }},
};

// After the spec: it belongs to the pod sets there.
void read_reclaimable(const Reader& reader, Workload& out) {
  std::vector<ReclaimablePods> reclaimable;
  read_list(
      reader, reclaimable, +[](const Reader& r, ReclaimablePods& p) { read_object(r, kReclaimable, p); });
  for (const ReclaimablePods& pods : reclaimable)
    for (WorkloadPodSet& set : out.pod_sets)
      if (set.name == pods.name) set.reclaimable = std::clamp(pods.count, 0, set.count);
}

// An object whose spec is the plain value `T::*Member`.
template <typename T, auto Member, const auto& Spec>
constexpr Field<T> kObject[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, T& object) { read_object_meta(r, object.metadata); }},
    {"spec", [](const Reader& r, T& object) { read_object(r, Spec, object.*Member); }},
    {"status"},
};

template <typename T, auto Member, const auto& Spec>
void read_with_spec(const Reader& reader, T& out) {
  read_object(reader, kObject<T, Member, Spec>, out);
  check_object_meta(reader, out.metadata);
  (out.*Member).name = out.metadata.name;
}

// What may be spent, and what has been.
template <typename T>
void read_budget(const Reader& reader, T& out) {
  out.queue.budget = budget_of(out.metadata);
  if (out.queue.budget.exists()) out.queue.spent = spent_of(conditions_of(reader));
}

constexpr Field<Workload> kWorkload[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, Workload& w) { read_object_meta(r, w.metadata); }},
    {"spec", [](const Reader& r, Workload& w) { read_object(r, kWorkloadSpec, w); }},
    {"status"},
};
constexpr Field<WorkloadPriorityClass> kPriorityClass[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, WorkloadPriorityClass& c) { read_object_meta(r, c.metadata); }},
    {"value", [](const Reader& r, WorkloadPriorityClass& c) { r.read(c.value); }},
    {"description"},
};

void read_kueue(const Reader& reader, ResourceFlavor& out) {
  read_with_spec<ResourceFlavor, &ResourceFlavor::flavor, kFlavorSpec>(reader, out);
}
void read_kueue(const Reader& reader, ClusterQueue& out) {
  read_with_spec<ClusterQueue, &ClusterQueue::queue, kQueueSpec>(reader, out);
  out.queue.victims = victim_terms_of(out.metadata);
  out.queue.user_limits = user_limits_of(out.metadata);
  if (reader.strict() && out.queue.cohort.empty()) check_no_limits(reader, out.queue.groups, "cohortName");
  read_budget(reader, out);
}
void read_kueue(const Reader& reader, Cohort& out) {
  read_with_spec<Cohort, &Cohort::cohort, kCohortSpec>(reader, out);
  if (reader.strict() && out.cohort.parent.empty()) check_no_limits(reader, out.cohort.groups, "parentName");
}
void read_kueue(const Reader& reader, LocalQueue& out) {
  read_with_spec<LocalQueue, &LocalQueue::queue, kLocalQueueSpec>(reader, out);
  out.queue.namespace_name = out.metadata.namespace_name.empty() ? "default" : out.metadata.namespace_name;
  out.queue.used = used_of_late(reader);
  read_budget(reader, out);
}
void read_kueue(const Reader& reader, AdmissionCheck& out) { read_admission_check(reader, out); }
void read_kueue(const Reader& reader, WorkloadPriorityClass& out) {
  read_object(reader, kPriorityClass, out);
  check_object_meta(reader, out.metadata);
}
void read_kueue(const Reader& reader, Workload& out) {
  read_object(reader, kWorkload, out);
  with_member(reader, "status", [&](const Reader& status) {
    with_member(status, "reclaimablePods", [&](const Reader& r) { read_reclaimable(r, out); });
    // The second is how v1beta1 writes it.
    for (const char* name : {"accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds"})
      with_member(status, name, [&](const Reader& r) { r.read(out.past_execution_s); });
  });
  check_object_meta(reader, out.metadata);
  if (out.pod_sets.empty()) reader.problem_below({"spec", "podSets"}, required_value("a workload has a pod set"));
  for (auto set = out.pod_sets.begin(); set != out.pod_sets.end(); ++set)
    if (std::ranges::find(out.pod_sets.begin(), set, set->name, &WorkloadPodSet::name) != set)
      reader.problem_below({"spec", "podSets"}, duplicate_value(set->name));
}

template <typename T>
KueueObject read_as(const Reader& reader) {
  T object;
  read_kueue(reader, object);
  return object;
}

struct KindEntry {
  std::string_view kind;
  KueueObject (*read)(const Reader&);
};
constexpr KindEntry kKinds[] = {
    {"ResourceFlavor", &read_as<ResourceFlavor>},
    {"ClusterQueue", &read_as<ClusterQueue>},
    {"Cohort", &read_as<Cohort>},
    {"LocalQueue", &read_as<LocalQueue>},
    {"AdmissionCheck", &read_as<AdmissionCheck>},
    {"Workload", &read_as<Workload>},
    {"WorkloadPriorityClass", &read_as<WorkloadPriorityClass>},
};

const KindEntry* find_kind(const Document& document) {
  if (document.api_version != "kueue.x-k8s.io/v1beta2" && document.api_version != "kueue.x-k8s.io/v1beta1")
    return nullptr;
  for (const KindEntry& entry : kKinds)
    if (entry.kind == document.kind) return &entry;
  return nullptr;
}

}  // namespace

bool is_kueue_kind(const Document& document) { return find_kind(document) != nullptr; }

KueueObject read_kueue_object(const Reader& reader, const Document& document) {
  return find_kind(document)->read(reader);
}

std::optional<KueueObject> decode_kueue(const Document& document, Problems& problems, bool from_server) {
  // Controllers write Workloads, and the API server does not judge the pods in them: what it would refuse passes.
  const bool strict = !from_server && document.kind != "Workload";
  ProblemSink sink{.strict = strict, .document = &document, .problems = {}};
  std::optional<KueueObject> object;
  const Status status = read_json(document.json, sink, [&](const Reader& reader) {
    const KindEntry* kind = find_kind(document);
    if (kind != nullptr) object = kind->read(reader);
    else
      reader.problem(
          fmt::format("'{}' of '{}' is none of Kueue's kinds that Berth reads: ResourceFlavor, ClusterQueue, "
                      "Cohort, LocalQueue, AdmissionCheck, Workload, WorkloadPriorityClass in kueue.x-k8s.io/v1beta2",
                      document.kind, document.api_version));
  });
  if (!status) sink.problems.push_back({document.file, 0, "", status.error().message});
  if (sink.problems.empty()) return object;
  problems.insert(problems.end(), sink.problems.begin(), sink.problems.end());
  return {};
}

}  // namespace berth::api
