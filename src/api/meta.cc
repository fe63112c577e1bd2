#include "api/meta.h"

#include <fmt/format.h>

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

constexpr Field<OwnerReference> kOwnerReference[] = {
    {"apiVersion", [](const Reader& r, OwnerReference& o) { r.read(o.api_version); }},
    {"kind", [](const Reader& r, OwnerReference& o) { r.read(o.kind); }},
    {"name", [](const Reader& r, OwnerReference& o) { r.read(o.name); }},
    {"uid", [](const Reader& r, OwnerReference& o) { r.read(o.uid); }},
    {"controller", [](const Reader& r, OwnerReference& o) { r.read(o.controller); }},
    {"blockOwnerDeletion"},
};

void read_owner(const Reader& reader, OwnerReference& out) { read_object(reader, kOwnerReference, out); }

void read_annotations(const Reader& reader, model::Labels& out) {
  reader.read(out);
  if (!reader.strict()) return;
  for (const auto& [key, value] : out) {
    std::string lower = key;  // in which the API server checks the keys of annotations, though not of labels
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::string why = check_qualified_name(lower);
    if (!why.empty()) reader.problem_at(key, invalid_value(key, why));
  }
}

constexpr Field<ObjectMeta> kObjectMeta[] = {
    {"name", [](const Reader& r, ObjectMeta& m) { r.read(m.name); }},
    {"generateName", [](const Reader& r, ObjectMeta& m) { r.read(m.generate_name); }},
    {"namespace", [](const Reader& r, ObjectMeta& m) { r.read(m.namespace_name); }},
    {"selfLink"},
    {"uid", [](const Reader& r, ObjectMeta& m) { r.read(m.uid); }},
    {"resourceVersion", [](const Reader& r, ObjectMeta& m) { r.read(m.resource_version); }},
    {"generation", [](const Reader& r, ObjectMeta& m) { r.read(m.generation); }},
    {"creationTimestamp", [](const Reader& r, ObjectMeta& m) { r.read(m.created); }},
    {"deletionTimestamp", [](const Reader& r, ObjectMeta& m) { r.read(m.deleted); }},
    {"deletionGracePeriodSeconds", [](const Reader& r, ObjectMeta& m) { r.read(m.deletion_grace_s); }},
    {"labels", [](const Reader& r, ObjectMeta& m) { read_label_map(r, m.labels); }},
    {"annotations", [](const Reader& r, ObjectMeta& m) { read_annotations(r, m.annotations); }},
    {"ownerReferences", [](const Reader& r, ObjectMeta& m) { read_list(r, m.owners, &read_owner); }},
    {"finalizers"},
    {"managedFields"},
};

constexpr Field<Condition> kCondition[] = {
    {"type", [](const Reader& r, Condition& c) { r.read(c.type); }},
    {"observedGeneration"},
    {"status", [](const Reader& r, Condition& c) { r.read(c.status); }},
    {"lastHeartbeatTime"},
    {"lastProbeTime"},
    {"lastTransitionTime"},
    {"lastUpdateTime"},
    {"reason", [](const Reader& r, Condition& c) { r.read(c.reason); }},
    {"message", [](const Reader& r, Condition& c) { r.read(c.message); }},
};

}  // namespace

const OwnerReference* ObjectMeta::controller() const {
  for (const OwnerReference& owner : owners)
    if (owner.controller) return &owner;
  return nullptr;
}

void read_object_meta(const Reader& reader, ObjectMeta& out) { read_object(reader, kObjectMeta, out); }

void read_condition(const Reader& reader, Condition& out) { read_object(reader, kCondition, out); }

void check_object_meta(const Reader& object, const ObjectMeta& metadata, NameCheck check_name) {
  if (!object.strict()) return;
  bool found = false;
  for (Members members(object); members.next();) {
    if (members.key() != "metadata" || members.value().is_null()) continue;
    found = true;
    if (members.value().type() != JsonType::kObject) continue;  // told already
    const Reader& meta = members.value();
    if (metadata.name.empty() && metadata.generate_name.empty() && meta.sound("name") && meta.sound("generateName"))
      meta.problem_at("name", required_value("name or generateName is required"));
    std::string why = metadata.name.empty() ? "" : check_name(metadata.name);
    if (!why.empty()) meta.problem_at("name", invalid_value(metadata.name, why));
    if (metadata.name.empty() && !metadata.generate_name.empty()) {
      why = check_name(metadata.generate_name + "x");
      if (!why.empty()) meta.problem_at("generateName", invalid_value(metadata.generate_name, why));
    }
    why = metadata.namespace_name.empty() ? "" : check_dns1123_label(metadata.namespace_name);
    if (!why.empty()) meta.problem_at("namespace", invalid_value(metadata.namespace_name, why));
  }
  if (!found && object.sound("metadata"))
    object.problem_at("metadata", required_value("give the object a name: metadata: {name: my-name}"));
}

}  // namespace berth::api
