#include "api/misplaced.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

using Names = std::vector<std::string_view>;

struct Home {
  std::string path;
  Names fields;
};

// The template of pods; empty for a Pod itself.
std::string template_of(std::string_view kind) {
  if (kind == "Pod") return "";
  return kind == "CronJob" ? "spec.jobTemplate.spec.template" : "spec.template";
}

std::string below(const std::string& path, std::string_view step) {
  return path.empty() ? std::string(step) : fmt::format("{}.{}", path, step);
}

// In the order in which they are preferred. None for kinds that make no pods.
std::vector<Home> homes_of(std::string_view kind) {
  const Names own = kind == "Pod" ? pod_spec_fields() : workload_spec_fields(kind);
  if (own.empty()) return {};
  std::vector<Home> homes{{"metadata", {"name", "generateName", "namespace", "labels", "annotations"}}, {"spec", own}};
  if (kind == "Pod") return homes;
  if (kind == "CronJob") homes.push_back({"spec.jobTemplate.spec", workload_spec_fields("Job")});
  const std::string pods = template_of(kind);
  homes.push_back({below(pods, "metadata"), {"labels", "annotations"}});
  homes.push_back({below(pods, "spec"), pod_spec_fields()});
  return homes;
}

bool is_container(std::string_view step) {
  return step == "containers" || step == "initContainers" || step == "ephemeralContainers";
}

// Where fields of an object within the pod's spec belong, or of one within a Node, by the object's own name.
std::vector<Home> homes_near(std::string_view kind, std::string_view path, const std::string& pods) {
  const std::string here(path);
  const bool item = path.ends_with(']');
  const std::string_view object = item ? path.substr(0, path.rfind('[')) : path;
  const std::string_view step = object.substr(object.rfind('.') + 1);
  const bool of_nodes = path.find("nodeAffinity") != std::string_view::npos;
  if (kind == "Node")
    return {{"spec", {"taints", "unschedulable"}},
            {"status", {"capacity", "allocatable"}},
            {"metadata", {"labels", "annotations"}}};
  if (item && is_container(step))
    return {{here + ".resources", {"limits", "requests"}},
            {below(pods, "spec"),
             {"nodeSelector", "tolerations", "affinity", "nodeName", "schedulerName", "priorityClassName",
              "runtimeClassName", "topologySpreadConstraints", "volumes"}}};
  if (here == below(pods, "spec") + ".resources") return {{here + ".limits", {"cpu", "memory"}}};
  if (step == "resources") return {{here + ".limits", {"nvidia.com/gpu", "cpu", "memory", "ephemeral-storage"}}};
  if (path == below(pods, "spec")) return {{here + ".affinity", {"nodeAffinity", "podAffinity", "podAntiAffinity"}}};
  if (item && step == "preferredDuringSchedulingIgnoredDuringExecution" && of_nodes)
    return {{here + ".preference", {"matchExpressions", "matchFields"}}};
  if (item && step == "preferredDuringSchedulingIgnoredDuringExecution")
    return {{here + ".podAffinityTerm", {"topologyKey", "labelSelector", "namespaceSelector", "namespaces"}}};
  if (!item && step == "requiredDuringSchedulingIgnoredDuringExecution" && of_nodes)
    return {{here + ".nodeSelectorTerms", {"matchExpressions", "matchFields"}}};
  return {};
}

// True if a field of the object at `path` may be meant for `home`, which is further down; or beside the pod's spec, for
// its labels.
bool may_be_meant(std::string_view path, const Home& home, const std::string& pods) {
  if (path.empty()) return true;
  if (path == below(pods, "spec")) return home.path == below(pods, "metadata");
  return home.path.size() > path.size() && home.path.starts_with(path) && home.path[path.size()] == '.';
}

}  // namespace

std::optional<Misplaced> find_misplaced(std::string_view kind, std::string_view path, std::string_view key,
                                        const Names& known) {
  const std::string pods = template_of(kind);
  std::vector<Home> homes = homes_of(kind);
  std::erase_if(homes, [&](const Home& home) { return !may_be_meant(path, home, pods); });
  for (Home& home : homes_near(kind, path, pods)) homes.push_back(std::move(home));
  Names all = known;
  for (const Home& home : homes) all.insert(all.end(), home.fields.begin(), home.fields.end());
  const std::string_view near = closest(key, all);  // of equally near ones the first
  if (near.empty() || std::find(known.begin(), known.end(), near) != known.end()) return std::nullopt;
  for (Home& home : homes)
    if (std::find(home.fields.begin(), home.fields.end(), near) != home.fields.end())
      return Misplaced{near, std::move(home.path)};
  return std::nullopt;
}

}  // namespace berth::api
