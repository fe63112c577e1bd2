#include "queueing/pod_defaults.h"

#include <fmt/format.h>

#include <utility>

#include "model/quantity.h"
#include "queueing/write_json.h"

namespace berth::queueing {
namespace {

bool is_known(const api::ObjectMeta* known, const api::ObjectMeta& now) {
  return known != nullptr && known->uid == now.uid && known->resource_version == now.resource_version &&
         !now.resource_version.empty();
}

// The amounts that `before` does not name.
void add_amounts(const model::ResourceList& before, const model::ResourceList& after, const char* key, Json& out) {
  for (const auto& [resource, amount] : after)
    if (!before.contains(resource)) out[key][resource] = model::format_resource(resource, amount);
}

void add_amounts(const std::vector<api::Container>& before, const std::vector<api::Container>& after, const char* key,
                 Json& spec) {
  for (size_t i = 0; i < after.size(); ++i) {
    const api::ResourceRequirements &was = before[i].resources, &is = after[i].resources;
    Json added = Json::object();
    add_amounts(was.limits, is.limits, "limits", added);
    add_amounts(was.requests, is.requests, "requests", added);
    if (!added.empty()) spec[key][i]["resources"].merge_patch(added);
  }
}

}  // namespace

std::string refusal(const limits::LimitRanges& ranges, const std::string& namespace_name,
                    const std::vector<api::WorkloadPodSet>& sets) {
  for (const api::WorkloadPodSet& set : sets)
    if (const auto refused = ranges.refusal(namespace_name, set.pod_template.spec))
      return fmt::format("resources didn't satisfy LimitRange constraints: {}", refused->text);
  return "";
}

bool PodDefaults::see(api::LimitRange range) {
  const api::LimitRange* known = ranges_.find(range.metadata.namespace_name, range.metadata.name);
  if (is_known(known == nullptr ? nullptr : &known->metadata, range.metadata)) return false;
  ranges_.put(std::move(range));
  return true;
}

bool PodDefaults::see(const api::RuntimeClass& runtime_class) {
  const api::RuntimeClass* known = classes_.find(runtime_class.metadata.name);
  if (is_known(known == nullptr ? nullptr : &known->metadata, runtime_class.metadata)) return false;
  classes_.add(runtime_class);
  return true;
}

std::string PodDefaults::complete(const std::string& namespace_name, api::PodSpec& spec,
                                  const std::string& json) const {
  const api::RuntimeClass* of = classes_.find(spec.runtime_class_name);
  const bool has_overhead = of != nullptr && !of->overhead.empty() && spec.overhead.empty();
  if (!has_overhead && !ranges_.any(namespace_name)) return json;
  const api::PodSpec before = spec;
  if (has_overhead) spec.overhead = of->overhead;
  ranges_.complete(namespace_name, spec);
  Json out = Json::parse(json);
  add_amounts(before.overhead, spec.overhead, "overhead", out["spec"]);
  add_amounts(before.containers, spec.containers, "containers", out["spec"]);
  add_amounts(before.init_containers, spec.init_containers, "initContainers", out["spec"]);
  return out.dump();
}

void PodDefaults::add_places(api::PodSpec& spec) const {
  if (classes_.knows(spec.runtime_class_name)) classes_.apply(spec);
}

}  // namespace berth::queueing
