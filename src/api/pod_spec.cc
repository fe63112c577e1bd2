#include <limits>
#include <set>

#include "api/decoders.h"
#include "api/names.h"
#include "api/requests.h"

namespace berth::api {
namespace {

// A string that must be one of `allowed`; unset by the empty string where the API allows that.
void read_choice(const Reader& reader, std::initializer_list<std::string_view> allowed, std::string& out) {
  std::string_view text;
  if (!reader.read(text) || text.empty()) return;
  for (const std::string_view choice : allowed) {
    if (choice != text) continue;
    out.assign(text);
    return;
  }
  reader.problem(unsupported_value(text, allowed));
}

constexpr Field<ClaimVolume> kClaimSource[] = {
    {"claimName", [](const Reader& r, ClaimVolume& v) { r.read(v.claim_name); }},
    {"readOnly"},
};
constexpr Field<ClaimVolume> kClaimTemplate[] = {
    {"metadata"},
    {"spec", [](const Reader& r, ClaimVolume& v) { read_claim_spec(r, *v.made); }},
};
constexpr Field<ClaimVolume> kEphemeral[] = {
    {"volumeClaimTemplate",
     [](const Reader& r, ClaimVolume& v) {
       v.made.emplace();
       read_object(r, kClaimTemplate, v);
     }},
};

constexpr Field<ClaimVolume> kVolume[] = {
    {"name", [](const Reader& r, ClaimVolume& v) { r.read(v.name); }},
    {"hostPath"},
    {"emptyDir"},
    {"gcePersistentDisk"},
    {"awsElasticBlockStore"},
    {"gitRepo"},
    {"secret"},
    {"nfs"},
    {"iscsi"},
    {"glusterfs"},
    {"persistentVolumeClaim", [](const Reader& r, ClaimVolume& v) { read_object(r, kClaimSource, v); }},
    {"rbd"},
    {"flexVolume"},
    {"cinder"},
    {"cephfs"},
    {"flocker"},
    {"downwardAPI"},
    {"fc"},
    {"azureFile"},
    {"configMap"},
    {"vsphereVolume"},
    {"quobyte"},
    {"azureDisk"},
    {"photonPersistentDisk"},
    {"projected"},
    {"portworxVolume"},
    {"scaleIO"},
    {"storageos"},
    {"csi"},
    {"ephemeral", [](const Reader& r, ClaimVolume& v) { read_object(r, kEphemeral, v); }},
    {"image"},
};

void check_volume_name(const Reader& volume, const std::string& name, std::set<std::string>& taken) {
  if (!volume.strict() || !volume.sound("name")) return;
  if (const std::string why = check_dns1123_label(name); name.empty())
    volume.problem_at("name", required_value("a name that volumeMounts give"));
  else if (!why.empty()) volume.problem_at("name", invalid_value(name, why));
  else if (!taken.insert(name).second) volume.problem_at("name", duplicate_value(name));
}

void read_volumes(const Reader& reader, PodSpec& out) {
  if (!reader.expect(JsonType::kArray)) return;
  std::set<std::string> names;
  for (Items items(reader); items.next();) {
    ClaimVolume volume;
    read_object(items.value(), kVolume, volume);
    check_volume_name(items.value(), volume.name, names);
    if (items.value().strict() && volume.claim_name.empty() && has_member(items.value(), "persistentVolumeClaim") &&
        items.value().sound({"persistentVolumeClaim", "claimName"}))
      items.value().problem_below({"persistentVolumeClaim", "claimName"}, required_value("the claim's name"));
    if (!volume.claim_name.empty() || volume.made) out.claim_volumes.push_back(std::move(volume));
  }
}

constexpr Field<PodSpec> kAffinity[] = {
    {"nodeAffinity", [](const Reader& r, PodSpec& s) { read_node_affinity(r, s.node_affinity); }},
    {"podAffinity", [](const Reader& r, PodSpec& s) { read_pod_affinity(r, s.pod_affinity); }},
    {"podAntiAffinity", [](const Reader& r, PodSpec& s) { read_pod_affinity(r, s.pod_anti_affinity); }},
};

constexpr Field<std::string> kGate[] = {{"name", [](const Reader& r, std::string& name) { r.read(name); }}};

void read_gate(const Reader& reader, std::string& out) {
  read_object(reader, kGate, out);
  if (!reader.strict() || !reader.sound("name")) return;
  const std::string why = check_qualified_name(out);
  if (!why.empty()) reader.problem_at("name", invalid_value(out, why));
}

void read_deadline(const Reader& reader, PodSpec& out) {
  if (!reader.read(out.active_deadline_s) || !reader.strict()) return;
  if (*out.active_deadline_s < 1 || *out.active_deadline_s > std::numeric_limits<int32_t>::max())
    reader.problem(
        invalid_value(std::to_string(*out.active_deadline_s), "must be between 1 and 2147483647, inclusive"));
}

void read_name(const Reader& reader, std::string& out) {
  if (!reader.read(out) || !reader.strict() || out.empty()) return;
  const std::string why = check_dns1123_subdomain(out);
  if (!why.empty()) reader.problem(invalid_value(out, why));
}

constexpr Field<PodSpec> kPodSpec[] = {
    {"volumes", &read_volumes},
    {"initContainers", [](const Reader& r, PodSpec& s) { read_list(r, s.init_containers, &read_container); }},
    {"containers", [](const Reader& r, PodSpec& s) { read_list(r, s.containers, &read_container); }},
    {"ephemeralContainers"},
    {"restartPolicy",
     [](const Reader& r, PodSpec& s) {
       read_choice(r, {"Always", "OnFailure", "Never"}, s.restart_policy);
     }},
    {"terminationGracePeriodSeconds", [](const Reader& r, PodSpec& s) { r.read(s.termination_grace_s); }},
    {"activeDeadlineSeconds", &read_deadline},
    {"dnsPolicy"},
    {"nodeSelector", [](const Reader& r, PodSpec& s) { read_label_map(r, s.node_selector); }},
    {"serviceAccountName"},
    {"serviceAccount"},
    {"automountServiceAccountToken"},
    {"nodeName", [](const Reader& r, PodSpec& s) { read_name(r, s.node_name); }},
    {"hostNetwork", [](const Reader& r, PodSpec& s) { r.read(s.host_network); }},
    {"hostPID"},
    {"hostIPC"},
    {"shareProcessNamespace"},
    {"securityContext"},
    {"imagePullSecrets"},
    {"hostname"},
    {"subdomain"},
    {"affinity", [](const Reader& r, PodSpec& s) { read_object(r, kAffinity, s); }},
    {"schedulerName",
     [](const Reader& r, PodSpec& s) {
       std::string name;
       if (r.read(name) && !name.empty()) s.scheduler_name = std::move(name);
     }},
    {"tolerations", [](const Reader& r, PodSpec& s) { read_list(r, s.tolerations, &read_toleration); }},
    {"hostAliases"},
    {"priorityClassName", [](const Reader& r, PodSpec& s) { read_name(r, s.priority_class_name); }},
    {"priority", [](const Reader& r, PodSpec& s) { r.read(s.priority); }},
    {"dnsConfig"},
    {"readinessGates"},
    {"runtimeClassName", [](const Reader& r, PodSpec& s) { read_name(r, s.runtime_class_name); }},
    {"enableServiceLinks"},
    {"preemptionPolicy",
     [](const Reader& r, PodSpec& s) {
       read_choice(r, {"PreemptLowerPriority", "Never"}, s.preemption_policy);
     }},
    {"overhead", [](const Reader& r, PodSpec& s) { read_resource_list(r, ResourceScope::kContainer, s.overhead); }},
    {"topologySpreadConstraints", [](const Reader& r, PodSpec& s) { read_topology_spread(r, s.topology_spread); }},
    {"setHostnameAsFQDN"},
    {"os"},
    {"hostUsers"},
    {"schedulingGates", [](const Reader& r, PodSpec& s) { read_list(r, s.scheduling_gates, &read_gate); }},
    {"resourceClaims", [](const Reader& r, PodSpec& s) { s.has_resource_claims = r.size() > 0; }},
    {"resources", [](const Reader& r, PodSpec& s) { read_pod_resources(r, s.resources.emplace()); }},
    {"hostnameOverride"},
    {"workloadRef"},
};

// Under hostNetwork a container port is a host port, which the API server fills in.
void default_host_ports(PodSpec& spec) {
  if (!spec.host_network) return;
  for (auto* containers : {&spec.containers, &spec.init_containers})
    for (Container& container : *containers)
      for (ContainerPort& port : container.ports)
        if (port.host_port == 0) port.host_port = port.container_port;
}

}  // namespace

std::vector<std::string_view> pod_spec_fields() { return names_of(kPodSpec); }

void read_pod_spec(const Reader& reader, PodSpec& out) {
  read_object(reader, kPodSpec, out);
  default_host_ports(out);
  default_pod_resources(out);
  if (reader.strict()) check_pod_spec(reader, out);
}

}  // namespace berth::api
