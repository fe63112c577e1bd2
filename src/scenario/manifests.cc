#include "scenario/manifests.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "api/names.h"
#include "api/reader.h"
#include "base/printable.h"
#include "bridge/to_model.h"

namespace berth::scenario {
namespace {

using Path = std::vector<std::string_view>;

struct Decoded {
  Manifest manifest;
  const api::Document* document;
  bool good = true;
};

int line_of(const api::Document& document) {
  return document.lines.empty() ? 0 : static_cast<int>(document.lines.front());
}

void report_from(const api::Reader& reader, const Path& path, size_t depth, const std::string& message) {
  if (depth + 1 >= path.size()) return path.empty() ? reader.problem(message) : reader.problem_at(path[depth], message);
  for (api::Members members(reader); members.next();)
    if (members.key() == path[depth]) return report_from(members.value(), path, depth + 1, message);
  reader.problem(message);
}

// Adds a problem with the line of what `path` names, or of the nearest part of it that is there.
void report(Decoded& decoded, const Path& path, const std::string& message, api::Problems& problems) {
  decoded.good = false;
  api::ProblemSink sink;
  sink.document = decoded.document;
  if (auto read = api::read_json(decoded.document->json, sink,
                                 [&](const api::Reader& root) { report_from(root, path, 0, message); });
      !read)
    sink.problems.push_back({decoded.document->file, decoded.manifest.line, "", message});
  problems.insert(problems.end(), sink.problems.begin(), sink.problems.end());
}

template <typename T>
constexpr bool kHasTemplate = requires(T t) {
  t.pod_template;
};

api::ObjectMeta& mutable_metadata(api::Object& object) {
  return std::visit([](auto& o) -> api::ObjectMeta& { return o.metadata; }, object);
}

bool cluster_scoped(const api::Object& object) {
  return std::holds_alternative<api::Node>(object) || std::holds_alternative<api::Namespace>(object) ||
         std::holds_alternative<api::PriorityClass>(object) || std::holds_alternative<api::PersistentVolume>(object) ||
         std::holds_alternative<api::StorageClass>(object) || std::holds_alternative<api::CsiNode>(object) ||
         std::holds_alternative<api::CsiDriver>(object) || std::holds_alternative<api::Unknown>(object);
}

const api::ObjectMeta* template_metadata(const api::Object& object) {
  return std::visit(
      [](const auto& o) -> const api::ObjectMeta* {
        if constexpr (kHasTemplate<decltype(o)>) return &o.pod_template.metadata;
        else return nullptr;
      },
      object);
}

// Where the pod's own spec stands in the object.
Path spec_path(const api::Object& object) {
  if (std::holds_alternative<api::Pod>(object)) return {"spec"};
  return {"spec", "template", "spec"};
}

std::string wrong_annotation(std::string_view key, const std::string& value) {
  if (key == bridge::kPreemptibleAnnotation || key == bridge::kAllowProtectedAnnotation)
    return value == "true" || value == "false" ? "" : "'" + value + "' is neither true nor false";
  if (key == bridge::kPlacementAnnotation)
    return value == "pack" || value == "spread" ? "" : fmt::format("'{}' is no placement; write pack or spread", value);
  if (key != kSimulatedArrival && key != kSimulatedRuntime) return "";
  const auto duration = parse_duration(value);
  if (!duration) return duration.error().message;
  if (*duration > kSimulatedDurationMax) return fmt::format("'{}' is more than ten years", value);
  return "";
}

void check_annotations(Decoded& decoded, const api::ObjectMeta& metadata, const Path& at, api::Problems& problems,
                       std::vector<std::string>& notes) {
  static const std::vector<std::string_view> known = {kSimulatedArrival, kSimulatedRuntime,
                                                      bridge::kPlacementAnnotation, bridge::kPreemptibleAnnotation,
                                                      bridge::kAllowProtectedAnnotation};
  constexpr std::string_view kOurs = "berth.dev/";
  std::vector<std::string_view> names;  // without the prefix, which would make any two of them alike
  for (const std::string_view key : known) names.push_back(key.substr(kOurs.size()));
  for (const auto& [key, value] : metadata.annotations) {
    if (!key.starts_with(kOurs)) continue;
    Path path = at;
    path.push_back(key);
    if (std::find(known.begin(), known.end(), key) != known.end()) {
      if (const std::string wrong = wrong_annotation(key, value); !wrong.empty())
        report(decoded, path, wrong, problems);
    } else if (const std::string_view near = api::closest(std::string_view(key).substr(kOurs.size()), names);
               !near.empty()) {
      report(decoded, path, fmt::format("unknown annotation; did you mean {}{}?", kOurs, near), problems);
    } else {
      notes.push_back(printable(fmt::format("{}:{}: annotation {} means nothing to Berth", decoded.manifest.file,
                                            decoded.manifest.line, key)));
    }
  }
}

void check_priority(Decoded& decoded, const PriorityClasses& classes, api::Problems& problems) {
  api::PodSpec* spec = pod_spec_of(decoded.manifest.object);
  if (spec == nullptr) return;
  const auto priority = classes.resolve(*spec);
  if (priority) {
    spec->priority = priority->value;
    if (priority->preemption_policy == "Never") spec->preemption_policy = "Never";
    return;
  }
  Path path = spec_path(decoded.manifest.object);
  path.push_back(spec->priority && spec->priority_class_name.empty() ? "priority" : "priorityClassName");
  report(decoded, path, priority.error().message, problems);
}

void note_unused(const Decoded& decoded, std::vector<std::string>& notes) {
  const auto note = [&](std::string_view what) {
    notes.push_back(printable(fmt::format("{}:{}: {}: {}", decoded.manifest.file, decoded.manifest.line,
                                          describe(decoded.manifest.object), what)));
  };
  api::Object object = decoded.manifest.object;
  if (std::holds_alternative<api::Unknown>(object)) note("this kind has no effect on the simulation");
  if (std::holds_alternative<api::CronJob>(object))
    note("a CronJob starts no job here; submit its job to see it placed");
  if (const auto* job = std::get_if<api::Job>(&object); job != nullptr && job->has_backoff_limit_per_index)
    note("backoffLimitPerIndex is not taken into account yet");
}

std::string full_name(const api::ObjectMeta& metadata) {
  return metadata.namespace_name.empty() ? metadata.name : metadata.namespace_name + "/" + metadata.name;
}

// Objects that are there twice: the API server would take the second as an update, which nobody means within one run.
void check_duplicates(std::vector<Decoded>& all, api::Problems& problems) {
  std::map<std::pair<std::string, std::string>, const Decoded*> seen;
  for (Decoded& decoded : all) {
    const api::ObjectMeta& metadata = api::metadata_of(decoded.manifest.object);
    if (metadata.name.empty()) continue;
    const auto [at, first] =
        seen.try_emplace({decoded.document->api_version + " " + decoded.document->kind, full_name(metadata)}, &decoded);
    if (first) continue;
    report(decoded, {"metadata", "name"},
           fmt::format("{} is already defined at {}:{}; rename or remove one of them",
                       describe(decoded.manifest.object), at->second->manifest.file, at->second->manifest.line),
           problems);
  }
}

}  // namespace

api::PodSpec* pod_spec_of(api::Object& object) {
  return std::visit(
      [](auto& o) -> api::PodSpec* {
        if constexpr (kHasTemplate<decltype(o)>) return &o.pod_template.spec;
        else if constexpr (std::is_same_v<decltype(o), api::Pod&>) return &o.spec;
        else return nullptr;
      },
      object);
}

std::string describe(const api::Object& object) {
  const api::ObjectMeta& metadata = api::metadata_of(object);
  const std::string name = metadata.name.empty() ? metadata.generate_name : full_name(metadata);
  return fmt::format("{} {}", api::kind_of(object), name);
}

std::optional<Duration> simulated(const api::Object& object, std::string_view annotation) {
  const std::string* text = api::metadata_of(object).annotation(annotation);
  const api::ObjectMeta* of_template = template_metadata(object);
  if (text == nullptr && of_template != nullptr) text = of_template->annotation(annotation);
  if (text == nullptr) return std::nullopt;
  const auto duration = parse_duration(*text);
  return duration ? std::optional(*duration) : std::nullopt;
}

std::vector<Manifest> decode_manifests(const std::vector<api::Document>& documents, PriorityClasses& classes,
                                       api::Problems& problems, std::vector<std::string>& notes) {
  std::vector<Decoded> all;
  bool all_classes = true;  // a class that could not be read must not look like one that is missing
  for (const api::Document& document : documents) {
    auto object = api::decode(document, problems);
    all_classes &= object.has_value() || document.kind != "PriorityClass";
    if (!object) continue;
    api::ObjectMeta& metadata = mutable_metadata(*object);
    if (metadata.namespace_name.empty() && !cluster_scoped(*object)) metadata.namespace_name = "default";
    if (std::holds_alternative<api::Namespace>(*object))  // as the API server does, whatever the manifest says
      metadata.labels.set("kubernetes.io/metadata.name", metadata.name);
    if (const auto* priority_class = std::get_if<api::PriorityClass>(&*object)) classes.add(*priority_class);
    all.push_back({{std::move(*object), document.file, line_of(document)}, &document});
  }
  check_duplicates(all, problems);
  for (Decoded& decoded : all) {
    const api::Object& object = decoded.manifest.object;
    check_annotations(decoded, api::metadata_of(object), {"metadata", "annotations"}, problems, notes);
    if (const api::ObjectMeta* metadata = template_metadata(object))
      check_annotations(decoded, *metadata, {"spec", "template", "metadata", "annotations"}, problems, notes);
    if (all_classes) check_priority(decoded, classes, problems);
    note_unused(decoded, notes);
  }
  std::vector<Manifest> out;
  for (Decoded& decoded : all)
    if (decoded.good) out.push_back(std::move(decoded.manifest));
  return out;
}

std::vector<Manifest> read_manifests(const std::vector<ManifestFile>& files, PriorityClasses& classes,
                                     api::Problems& problems, std::vector<std::string>& notes) {
  std::vector<api::Document> documents;
  for (const ManifestFile& file : files) {
    auto more = api::read_documents(file.text, file.name, problems);
    std::move(more.begin(), more.end(), std::back_inserter(documents));
  }
  return decode_manifests(documents, classes, problems, notes);
}

}  // namespace berth::scenario
