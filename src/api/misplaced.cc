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
