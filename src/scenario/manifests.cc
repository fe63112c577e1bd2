#include "scenario/manifests.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>

#include "api/kueue_names.h"
#include "api/names.h"
#include "api/reader.h"
#include "api/runtime_estimate.h"
#include "base/printable.h"
#include "bridge/devices.h"
#include "bridge/mig.h"
#include "limits/runtime_classes.h"
#include "scenario/annotations.h"
#include "scenario/made_pods.h"
#include "scenario/pod_names.h"
#include "scenario/remarks.h"
#include "scenario/stored_work.h"
#include "workloads/kueue/queued.h"

namespace berth::scenario {
namespace {

using Path = std::vector<std::string_view>;

struct Decoded {
  Manifest manifest;
  const api::Document* document;
  api::ProblemSink* sink;  // of the document
  bool again = false;      // the same as one before, or nothing of its own to do
};

int line_of(const api::Document& document) {
  return document.lines.empty() ? 0 : static_cast<int>(document.lines.front());
}

// Calls `use` with the root of the document again.
template <typename Use>
void reopen(const Decoded& decoded, const Use& use) {
  if (const Status read = api::read_json(decoded.document->json, *decoded.sink, use); !read)
    decoded.sink->problems.push_back({decoded.document->file, decoded.manifest.line, "", read.error().message});
}

// True if what was read at these places holds.
bool sound(const Decoded& decoded, std::initializer_list<Path> paths) {
  if (decoded.sink->told.empty() && !decoded.document->damaged) return true;
  bool all = true;
  reopen(decoded, [&](const api::Reader& root) {
    for (const Path& path : paths) all = all && root.sound(path);
  });
  return all;
}

// Adds problems with the lines of what their paths name, or of the nearest part of it that is there; nothing where one
// was told of it already.
void report(Decoded& decoded, const std::vector<std::pair<Path, std::string>>& found) {
  if (found.empty()) return;
  reopen(decoded, [&](const api::Reader& root) {
    std::vector<bool> told;  // before any of these: asking costs nothing in a document without problems
    for (const auto& [path, message] : found) told.push_back(!root.sound(path));
    for (size_t i = 0; i < found.size(); ++i)
      if (!told[i]) root.problem_below(found[i].first, found[i].second);
  });
}
void report(Decoded& decoded, const Path& path, const std::string& message) { report(decoded, {{path, message}}); }

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
         std::holds_alternative<api::CsiDriver>(object) || std::holds_alternative<api::RuntimeClass>(object) ||
         std::holds_alternative<api::Unknown>(object);
}

const api::ObjectMeta* template_metadata(const api::Object& object) {
  return std::visit(
      [](const auto& o) -> const api::ObjectMeta* {
        if constexpr (kHasTemplate<decltype(o)>) return &o.pod_template.metadata;
        else return nullptr;
      },
      object);
}

// Where this field of the pod's own spec stands in the object.
Path spec_path(const api::Object& object, std::string_view field) {
  if (std::holds_alternative<api::Pod>(object)) return {"spec", field};
  return {"spec", "template", "spec", field};
}

// Whether the object is there already: it was read from a cluster, or it is a pod with a node. What is wrong with it,
// as far as the API server lets it pass, concerns it alone, as in a cluster.
bool exists(const api::Object& object) {
  const auto* pod = std::get_if<api::Pod>(&object);
  return !api::metadata_of(object).uid.empty() || (pod != nullptr && !pod->spec.node_name.empty());
}

void check_annotations(Decoded& decoded, const api::ObjectMeta& metadata, const Path& at,
                       const bridge::TopologyLevels& levels, std::vector<std::string>& notes) {
  constexpr std::string_view kSimulatedPrefix = "berth.dev/simulated-";
  const bool of_owner = template_metadata(decoded.manifest.object) != nullptr && at.size() == 2;
  const bool queued =
      std::holds_alternative<api::Job>(decoded.manifest.object) && !workloads::queue_of(metadata).empty();
  std::vector<std::pair<Path, std::string>> found;
  const auto wrong_with = [&](std::string_view key, Path path, const std::string& what) {
    if (!exists(decoded.manifest.object) || key.starts_with(kSimulatedPrefix))
      return void(found.emplace_back(std::move(path), what));
    const std::string_view of = path[path.size() - 2] == "labels" ? "label" : "annotation";
    notes.push_back(
        printable(fmt::format("{}:{}: {} {}: {}", decoded.manifest.file, decoded.manifest.line, of, key, what)));
  };
  const auto take = [&](std::string_view section, const std::string& key, const KeyFinding& finding) {
    Path path = at;
    path.back() = section;
    path.push_back(key);
    if (!finding.wrong.empty() && found.size() <= api::ProblemSink::kProblemsMax)
      wrong_with(key, std::move(path), finding.wrong);
    if (!finding.remark.empty())
      notes.push_back(
          printable(fmt::format("{}:{}: {}", decoded.manifest.file, decoded.manifest.line, finding.remark)));
  };
  for (const auto& [key, value] : metadata.annotations) {
    const bool of_pods = of_owner && !(queued && is_of_queued_work(key));
    take("annotations", key, find_in_annotation(key, value, levels, of_pods ? describe(decoded.manifest.object) : ""));
  }
  for (const auto& [key, value] : metadata.labels)
    take("labels", key, find_in_label(key, value, std::holds_alternative<api::Node>(decoded.manifest.object)));
  const auto* pod = std::get_if<api::Pod>(&decoded.manifest.object);
  if (const api::PodSpec* spec = pod_spec_of(decoded.manifest.object); pod != nullptr || at.size() > 2)
    for (const std::string& unheeded : unheeded_annotations(metadata, *spec))
      notes.push_back(printable(fmt::format("{}:{}: {}", decoded.manifest.file, decoded.manifest.line, unheeded)));
  const auto* job = at.size() == 2 ? std::get_if<api::Job>(&decoded.manifest.object) : nullptr;
  if (pod != nullptr || job != nullptr)
    for (const api::QueuedProblem& problem : workloads::queued_problems(metadata, job))
      wrong_with(problem.key, {"metadata", problem.section, problem.key},
                 problem.field.empty() ? problem.what : problem.field + ": " + problem.what);
  report(decoded, found);
}

// The PriorityClasses of the input, and those whose value could not be read: no pod is judged by these.
class ClassesRead {
 public:
  explicit ClassesRead(PriorityClasses& classes, bool all_texts_read)
      : classes_(classes), some_lost_(!all_texts_read) {}

  void add(const Decoded& decoded, const api::PriorityClass& priority_class) {
    const bool named = sound(decoded, {{"metadata", "name"}}), valued = sound(decoded, {{"value"}});
    const bool known_default = sound(decoded, {{"globalDefault"}}) && (valued || !priority_class.global_default);
    default_unknown_ = default_unknown_ || !known_default;
    if (!named) some_lost_ = true;
    else if (valued) classes_.add(priority_class);
    else unread_.insert(priority_class.metadata.name);
  }
  // A document that was to be a class, of which nothing is known.
  void add_lost() { some_lost_ = true; }

  void check(Decoded& decoded) const {
    api::PodSpec* spec = pod_spec_of(decoded.manifest.object);
    if (spec == nullptr || !decidable(decoded, *spec)) return;
    const bool stored = !api::metadata_of(decoded.manifest.object).uid.empty() &&
                        std::holds_alternative<api::Pod>(decoded.manifest.object);
    const auto priority = classes_.resolve(*spec, stored);
    if (priority) {
      if (const std::string why = PriorityClasses::policy_problem(*spec, *priority); !stored && !why.empty())
        return report(decoded, spec_path(decoded.manifest.object, "preemptionPolicy"), why);
      spec->priority = priority->value;
      if (!stored && spec->priority_class_name.empty()) spec->priority_class_name = priority->name;
      if (priority->preemption_policy == "Never") spec->preemption_policy = "Never";
      return;
    }
    const bool about_number = spec->priority && spec->priority_class_name.empty();
    report(decoded, spec_path(decoded.manifest.object, about_number ? "priority" : "priorityClassName"),
           priority.error().message);
  }

 private:
  bool decidable(const Decoded& decoded, const api::PodSpec& spec) const {
    const std::string& name = spec.priority_class_name;
    if (!sound(decoded, {spec_path(decoded.manifest.object, "priority"),
                         spec_path(decoded.manifest.object, "priorityClassName")}))
      return false;
    if (name.empty()) return !default_unknown_ && !some_lost_;
    return !unread_.contains(name) && (!some_lost_ || classes_.knows(name));
  }

  PriorityClasses& classes_;
  std::set<std::string> unread_;  // names of classes without a value
  bool default_unknown_ = false;
  bool some_lost_ = false;  // even their names are not known
};

// Does what the server does to a new pod of a RuntimeClass.
void follow_runtime_class(Decoded& decoded, const limits::RuntimeClasses& classes, std::set<std::string>& missing) {
  api::Object& object = decoded.manifest.object;
  api::PodSpec* spec = pod_spec_of(object);
  if (spec == nullptr || spec->runtime_class_name.empty()) return;
  const bool stored = std::holds_alternative<api::Pod>(object) && !api::metadata_of(object).uid.empty();
  if (stored || !sound(decoded, {spec_path(object, "runtimeClassName")})) return;
  if (!classes.knows(spec->runtime_class_name)) missing.insert(spec->runtime_class_name);
  else
    for (const auto& [field, wrong] : classes.apply(*spec)) report(decoded, spec_path(object, field), wrong);
}

void note_unused(const Decoded& decoded, std::vector<std::string>& notes) {
  for (const std::string& remark : remarks(decoded.manifest.object))
    notes.push_back(printable(fmt::format("{}:{}: {}: {}", decoded.manifest.file, decoded.manifest.line,
                                          describe(decoded.manifest.object), remark)));
}

std::string full_name(const api::ObjectMeta& metadata) {
  return metadata.namespace_name.empty() ? metadata.name : metadata.namespace_name + "/" + metadata.name;
}

// Objects that are there twice: the API server would take the second as an update, which nobody means within one run.
// The very same object again, such as the Namespace in each file of a folder, changes nothing.
void check_duplicates(std::vector<Decoded>& all) {
  std::map<std::pair<std::string, std::string>, const Decoded*> seen;
  for (Decoded& decoded : all) {
    const api::ObjectMeta& metadata = api::metadata_of(decoded.manifest.object);
    if (metadata.name.empty() || !sound(decoded, {{"metadata", "name"}, {"metadata", "namespace"}})) continue;
    const auto [at, first] =
        seen.try_emplace({decoded.document->api_version + " " + decoded.document->kind, full_name(metadata)}, &decoded);
    if (first) continue;
    decoded.again = decoded.document->json == at->second->document->json;
    if (decoded.again) continue;
    report(decoded, {"metadata", "name"},
           fmt::format("{} is already defined at {}:{}; rename or remove one of them",
                       describe(decoded.manifest.object), at->second->manifest.file, at->second->manifest.line));
  }
}

MadePods made_in(const std::vector<Decoded>& all) {
  MadePods out;
  for (const Decoded& decoded : all)
    if (!std::holds_alternative<api::Workload>(decoded.manifest.object)) out.see(decoded.manifest.object);
  return out;
}

// Gives Jobs and Workloads what their queues know of them. What has finished, and what comes with its Job, is no work
// of its own. False: there are no queues.
bool resume_stored_work(std::vector<Decoded>& all) {
  StoredWork work;
  for (const Decoded& decoded : all)
    if (decoded.sink->problems.empty() && decoded.sink->told.empty())
      work.see(decoded.manifest.object, *decoded.document);
  for (Decoded& decoded : all) {
    decoded.manifest.stored = work.of(decoded.manifest.object);
    const bool finished = decoded.manifest.stored != nullptr && decoded.manifest.stored->is("Finished");
    decoded.again |= finished || work.comes_with_its_job(decoded.manifest.object);
  }
  return work.serves();
}

// Pods that have the name of one that a StatefulSet is yet to make: the server would hold either.
void check_statefulset_names(std::vector<Decoded>& all, const MadePods& made) {
  PodNames names;
  for (const Decoded& decoded : all)
    if (std::holds_alternative<api::StatefulSet>(decoded.manifest.object) && !made.made_by(decoded.manifest.object) &&
        sound(decoded, {{"metadata", "name"}, {"metadata", "namespace"}, {"spec", "replicas"}, {"spec", "ordinals"}}))
      names.reserve(decoded.manifest.object);
  for (Decoded& decoded : all) {
    const auto* pod = std::get_if<api::Pod>(&decoded.manifest.object);
    if (pod == nullptr || !sound(decoded, {{"metadata", "namespace"}})) continue;
    const std::string owner = names.statefulset_of(pod->metadata.namespace_name, pod->metadata.name);
    if (!owner.empty())
      report(decoded, {"metadata", "name"},
             fmt::format("StatefulSet {}/{} makes a pod of this name; rename or remove one of them",
                         pod->metadata.namespace_name, owner));
  }
}

// A controller that comes with what it made, as a cluster lists them, makes nothing more here.
bool made_its_pods(const Decoded& decoded, const MadePods& made, bool queues, std::vector<std::string>& notes) {
  const api::Object& object = decoded.manifest.object;
  if (template_metadata(object) == nullptr || decoded.manifest.stored != nullptr || !made.made_by(object)) return false;
  const bool queued =
      queues && std::holds_alternative<api::Job>(object) && !workloads::queue_of(api::metadata_of(object)).empty();
  notes.push_back(printable(
      fmt::format("{}:{}: {}: what it made is in the input; it makes no other pods here{}", decoded.manifest.file,
                  decoded.manifest.line, describe(object),
                  queued ? ", and as its Workload is not in the input, the quota that it holds is not counted" : "")));
  return true;
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

namespace {

std::vector<Manifest> decode_all(const std::vector<api::Document>& documents, bool all_texts_read,
                                 PriorityClasses& classes, api::Problems& problems, std::vector<std::string>& notes,
                                 const bridge::TopologyLevels& levels) {
  std::vector<api::ProblemSink> sinks(documents.size());
  std::vector<Decoded> all;
  ClassesRead classes_read(classes, all_texts_read);
  limits::RuntimeClasses runtime_classes;
  for (size_t i = 0; i < documents.size(); ++i) {
    const api::Document& document = documents[i];
    auto object = api::decode_what_holds(document, sinks[i]);
    if (!object && document.kind == "PriorityClass") classes_read.add_lost();
    if (!object) continue;
    api::ObjectMeta& metadata = mutable_metadata(*object);
    if (metadata.namespace_name.empty() && !cluster_scoped(*object)) metadata.namespace_name = "default";
    if (std::holds_alternative<api::Namespace>(*object))  // as the API server does, whatever the manifest says
      metadata.labels.set("kubernetes.io/metadata.name", metadata.name);
    all.push_back({{std::move(*object), document.file, line_of(document)}, &document, &sinks[i]});
    if (const auto* priority_class = std::get_if<api::PriorityClass>(&all.back().manifest.object))
      classes_read.add(all.back(), *priority_class);
    if (const auto* runtime_class = std::get_if<api::RuntimeClass>(&all.back().manifest.object))
      runtime_classes.add(*runtime_class);
  }
  check_duplicates(all);
  const bool queues = resume_stored_work(all);
  const MadePods made = made_in(all);
  check_statefulset_names(all, made);
  std::vector<Manifest> out;
  std::set<std::string> missing_runtimes;
  for (Decoded& decoded : all) {
    const api::Object& object = decoded.manifest.object;
    check_annotations(decoded, api::metadata_of(object), {"metadata", "annotations"}, levels, notes);
    if (const api::ObjectMeta* metadata = template_metadata(object))
      check_annotations(decoded, *metadata, {"spec", "template", "metadata", "annotations"}, levels, notes);
    const bool makes_nothing = made_its_pods(decoded, made, queues, notes);
    if (!makes_nothing) classes_read.check(decoded);
    if (!makes_nothing) follow_runtime_class(decoded, runtime_classes, missing_runtimes);
    note_unused(decoded, notes);
    const bool holds = decoded.sink->problems.empty() && decoded.sink->told.empty();
    if (holds && !decoded.again && !makes_nothing) out.push_back(std::move(decoded.manifest));
  }
  for (const std::string& name : missing_runtimes)
    notes.push_back(
        printable(fmt::format("RuntimeClass {} is not in the input: what it adds to its pods, and which "
                              "nodes have it, is not counted",
                              name)));
  sort_by_creation(out);
  for (const api::ProblemSink& sink : sinks)
    problems.insert(problems.end(), sink.problems.begin(), sink.problems.end());
  return out;
}

}  // namespace

std::vector<Manifest> decode_manifests(const std::vector<api::Document>& documents, PriorityClasses& classes,
                                       api::Problems& problems, std::vector<std::string>& notes,
                                       const bridge::TopologyLevels& levels) {
  return decode_all(documents, true, classes, problems, notes, levels);
}

std::vector<Manifest> read_manifests(const std::vector<ManifestFile>& files, PriorityClasses& classes,
                                     api::Problems& problems, std::vector<std::string>& notes,
                                     const bridge::TopologyLevels& levels) {
  std::vector<api::Document> documents;
  for (const ManifestFile& file : files) {
    auto more = api::read_documents(file.text, file.name, problems);
    std::move(more.begin(), more.end(), std::back_inserter(documents));
  }
  const bool all_read =
      std::all_of(problems.begin(), problems.end(), [](const api::Problem& problem) { return problem.read_on; });
  return decode_all(documents, all_read, classes, problems, notes, levels);
}

}  // namespace berth::scenario
