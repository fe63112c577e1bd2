#include "api/pod.h"

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

constexpr Field<Pod> kPod[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, Pod& p) { read_object_meta(r, p.metadata); }},
    {"spec", [](const Reader& r, Pod& p) { read_pod_spec(r, p.spec); }},
    {"status", [](const Reader& r, Pod& p) { read_pod_status(r, p.status); }},
};

constexpr Field<PodTemplate> kPodTemplate[] = {
    {"metadata", [](const Reader& r, PodTemplate& t) { read_object_meta(r, t.metadata); }},
    {"spec", [](const Reader& r, PodTemplate& t) { read_pod_spec(r, t.spec); }},
};

}  // namespace

void require_spec(const Reader& object) {
  if (!object.strict()) return;
  for (Members members(object); members.next();)
    if (members.key() == "spec" && !members.value().is_null()) return;
  if (object.sound("spec")) object.problem_at("spec", required_value("say what it should run"));
}

void read_value(const Reader& reader, Pod& out) {
  read_object(reader, kPod, out);
  check_match_label_keys(reader, out.spec, out.metadata.labels);
  check_object_meta(reader, out.metadata);
  require_spec(reader);
}

void read_pod_template(const Reader& reader, PodTemplate& out) {
  read_object(reader, kPodTemplate, out);
  check_match_label_keys(reader, out.spec, out.metadata.labels);
  require_spec(reader);
}

}  // namespace berth::api
