#include "api/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

struct KindEntry {
  std::string_view group;    // empty for the core group
  std::string_view version;  // the one that Berth reads
  std::string_view kind;
  Object (*read)(const Reader&);  // null: passed on as Unknown
};

template <typename T>
Object read_as(const Reader& reader) {
  T object;
  read_value(reader, object);
  return object;
}

constexpr KindEntry kKinds[] = {
    {"", "v1", "Pod", &read_as<Pod>},
    {"", "v1", "Node", &read_as<Node>},
    {"", "v1", "Namespace", &read_as<Namespace>},
    {"scheduling.k8s.io", "v1", "PriorityClass", &read_as<PriorityClass>},
    {"batch", "v1", "Job", &read_as<Job>},
    {"batch", "v1", "CronJob", &read_as<CronJob>},
    {"apps", "v1", "Deployment", &read_as<Deployment>},
    {"apps", "v1", "ReplicaSet", &read_as<ReplicaSet>},
    {"apps", "v1", "StatefulSet", &read_as<StatefulSet>},
    {"apps", "v1", "DaemonSet", &read_as<DaemonSet>},
    {"storage.k8s.io", "v1", "StorageClass", &read_as<StorageClass>},
    {"storage.k8s.io", "v1", "CSINode", &read_as<CsiNode>},
    {"storage.k8s.io", "v1", "CSIDriver", &read_as<CsiDriver>},
    {"storage.k8s.io", "v1", "CSIStorageCapacity", &read_as<CsiStorageCapacity>},
    {"policy", "v1", "PodDisruptionBudget", &read_as<PodDisruptionBudget>},
    {"node.k8s.io", "v1", "RuntimeClass", &read_as<RuntimeClass>},
    {"policy", "v1", "Eviction", nullptr},
    {"storage.k8s.io", "v1", "VolumeAttachment", nullptr},
    {"storage.k8s.io", "v1", "VolumeAttributesClass", nullptr},
    {"apps", "v1", "ControllerRevision", nullptr},
    {"", "v1", "Binding", nullptr},
    {"", "v1", "ComponentStatus", nullptr},
    {"", "v1", "ConfigMap", nullptr},
    {"", "v1", "Endpoints", nullptr},
    {"", "v1", "Event", nullptr},
    {"", "v1", "LimitRange", &read_as<LimitRange>},
    {"", "v1", "PersistentVolume", &read_as<PersistentVolume>},
    {"", "v1", "PersistentVolumeClaim", &read_as<PersistentVolumeClaim>},
    {"", "v1", "PodTemplate", nullptr},
    {"", "v1", "ReplicationController", nullptr},
    {"", "v1", "ResourceQuota", &read_as<ResourceQuota>},
    {"", "v1", "Secret", nullptr},
    {"", "v1", "Service", nullptr},
    {"", "v1", "ServiceAccount", nullptr},
};

bool is_closed_group(std::string_view group) {
  return std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](const KindEntry& entry) { return entry.group == group; });
}

std::string api_version_of(const KindEntry& entry) {
  return entry.group.empty() ? std::string(entry.version) : fmt::format("{}/{}", entry.group, entry.version);
}

// Why no server has this kind at this version; empty if one may: custom resources and groups that Berth does not know.
std::string check_kind(const Document& document, std::string_view group, const KindEntry* found,
                       std::string_view& path) {
  path = "apiVersion";
  if (found != nullptr && found->group == group)
    return api_version_of(*found) == document.api_version
               ? ""
               : fmt::format("unknown version '{}' of kind {}; write '{}'", document.api_version, document.kind,
                             api_version_of(*found));
  const bool dotless = !group.empty() && group.find('.') == std::string_view::npos;
  const bool legacy = dotless || is_closed_group(group);
  if (found != nullptr && legacy)
    return fmt::format("kind {} is not in '{}'; write '{}'", document.kind, document.api_version,
                       api_version_of(*found));
  static const std::vector<std::string_view> short_groups = {"apps", "autoscaling", "batch", "extensions", "policy"};
  if (dotless && std::find(short_groups.begin(), short_groups.end(), group) == short_groups.end()) {
    const std::string_view near = closest(group, short_groups);
    return fmt::format(
        "unknown API group '{}'{}", group,
        near.empty() ? "; groups of your own have a dot in their name" : fmt::format("; did you mean '{}'?", near));
  }
  std::vector<std::string_view> of_group;
  for (const KindEntry& entry : kKinds)
    if (entry.group == group) of_group.push_back(entry.kind);
  const bool has_others = group == "scheduling.k8s.io";  // than those of kKinds
  if (of_group.empty() || (has_others && closest(document.kind, of_group).empty())) return "";
  path = "kind";
  std::vector<std::string_view> kinds;
  for (const KindEntry& entry : kKinds) kinds.push_back(entry.kind);
  const std::string_view near = closest(document.kind, kinds);
  return fmt::format("unknown kind '{}' in '{}'{}", document.kind, document.api_version,
                     near.empty() ? "; check kind and apiVersion" : fmt::format("; did you mean '{}'?", near));
}

constexpr Field<ObjectMeta> kAnyObject[] = {
    {"metadata", [](const Reader& r, ObjectMeta& m) { read_object_meta(r, m); }},
};

Object read_queueing(const Reader& reader, const Document& document) {
  return std::visit([](auto object) { return Object(std::move(object)); }, read_kueue_object(reader, document));
}

Object read_unknown(const Reader& reader, const Document& document) {
  Unknown unknown{document.api_version, document.kind, {}};
  read_object(reader, kAnyObject, unknown.metadata);
  return unknown;
}

}  // namespace

std::optional<Object> decode_what_holds(const Document& document, ProblemSink& sink) {
  const size_t slash = document.api_version.find('/');
  const std::string_view group =
      slash == std::string::npos ? std::string_view() : std::string_view(document.api_version).substr(0, slash);
  const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const KindEntry& entry) { return entry.kind == document.kind; });
  if (found == std::end(kKinds)) found = nullptr;
  std::string_view kind_path;
  const std::string why = check_kind(document, group, found, kind_path);
  const bool known = found != nullptr && found->read != nullptr && (found->group == group || !why.empty());
  const bool queueing = is_kueue_kind(document);
  // Controllers write Workloads, and the API server does not judge the pods in them: what it would refuse passes.
  sink.strict = known || (queueing && document.kind != "Workload");
  sink.document = &document;
  std::optional<Object> object;
  const Status status = read_json(document.json, sink, [&](const Reader& reader) {
    if (!why.empty()) reader.problem_at(kind_path, why);
    Object read = known      ? found->read(reader)
                  : queueing ? read_queueing(reader, document)
                             : read_unknown(reader, document);
    if (why.empty()) object = std::move(read);
  });
  if (!status)
    sink.problems.push_back(
        {document.file, document.lines.empty() ? 0 : static_cast<int>(document.lines[0]), "", status.error().message});
  return object;
}

std::optional<Object> decode(const Document& document, Problems& problems) {
  ProblemSink sink;
  std::optional<Object> object = decode_what_holds(document, sink);
  problems.insert(problems.end(), sink.problems.begin(), sink.problems.end());
  return sink.told.empty() && sink.problems.empty() ? std::move(object) : std::nullopt;
}

std::string_view kind_of(const Object& object) {
  static constexpr std::array<std::string_view, std::variant_size_v<Object> - 1> kNames{"Pod",
                                                                                        "Node",
                                                                                        "Namespace",
                                                                                        "PriorityClass",
                                                                                        "Job",
                                                                                        "CronJob",
                                                                                        "Deployment",
                                                                                        "ReplicaSet",
                                                                                        "StatefulSet",
                                                                                        "DaemonSet",
                                                                                        "PersistentVolumeClaim",
                                                                                        "PersistentVolume",
                                                                                        "StorageClass",
                                                                                        "CSINode",
                                                                                        "CSIDriver",
                                                                                        "CSIStorageCapacity",
                                                                                        "PodDisruptionBudget",
                                                                                        "RuntimeClass",
                                                                                        "ResourceFlavor",
                                                                                        "ClusterQueue",
                                                                                        "Cohort",
                                                                                        "LocalQueue",
                                                                                        "AdmissionCheck",
                                                                                        "Workload",
                                                                                        "WorkloadPriorityClass",
                                                                                        "ResourceQuota",
                                                                                        "LimitRange"};
  const auto* unknown = std::get_if<Unknown>(&object);
  return unknown != nullptr ? std::string_view(unknown->kind) : kNames[object.index()];
}

const ObjectMeta& metadata_of(const Object& object) {
  return std::visit([](const auto& value) -> const ObjectMeta& { return value.metadata; }, object);
}

template <typename T>
Result<T> decode_json(std::string_view json) {
  ProblemSink sink;
  T object;
  BERTH_TRY_VOID(read_json(json, sink, [&](const Reader& reader) { read_value(reader, object); }));
  if (!sink.problems.empty()) return fail(ErrorCode::kInvalidInput, to_string(sink.problems.front()));
  return object;
}

template Result<Pod> decode_json<Pod>(std::string_view);
template Result<Node> decode_json<Node>(std::string_view);
template Result<Job> decode_json<Job>(std::string_view);
template Result<Namespace> decode_json<Namespace>(std::string_view);
template Result<PriorityClass> decode_json<PriorityClass>(std::string_view);
template Result<PersistentVolumeClaim> decode_json<PersistentVolumeClaim>(std::string_view);
template Result<PersistentVolume> decode_json<PersistentVolume>(std::string_view);
template Result<StorageClass> decode_json<StorageClass>(std::string_view);
template Result<CsiNode> decode_json<CsiNode>(std::string_view);
template Result<CsiDriver> decode_json<CsiDriver>(std::string_view);
template Result<CsiStorageCapacity> decode_json<CsiStorageCapacity>(std::string_view);
template Result<ResourceQuota> decode_json<ResourceQuota>(std::string_view);
template Result<LimitRange> decode_json<LimitRange>(std::string_view);
template Result<RuntimeClass> decode_json<RuntimeClass>(std::string_view);
template Result<PodDisruptionBudget> decode_json<PodDisruptionBudget>(std::string_view);

}  // namespace berth::api
