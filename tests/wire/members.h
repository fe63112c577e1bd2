// The members of what src/api decodes from pods and nodes, by name: to tell two objects apart, and to tell which
// members any object has set. A structured binding that does not name all of a struct's members does not compile, so
// nobody adds one to src/api without adding it here, and then to the objects of tests/cluster/wire_test.py.
#pragma once

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "api/cluster.h"
#include "api/pod.h"

namespace berth::wire {

template <typename T>
struct Members;  // kType, kNames, and of(object): a tuple of references

#define WIRE_MEMBERS(Type, ...)                              \
  template <>                                                \
  struct Members<Type> {                                     \
    static constexpr std::string_view kType = #Type;         \
    static constexpr std::string_view kNames = #__VA_ARGS__; \
    static auto of(const Type& object) {                     \
      const auto& [__VA_ARGS__] = object;                    \
      return std::tie(__VA_ARGS__);                          \
    }                                                        \
  };

WIRE_MEMBERS(api::OwnerReference, api_version, kind, name, uid, controller)
WIRE_MEMBERS(api::ObjectMeta, name, generate_name, namespace_name, uid, resource_version, generation, created, deleted,
             deletion_grace_s, labels, annotations, owners)
WIRE_MEMBERS(api::Condition, type, status, reason, message)
WIRE_MEMBERS(api::ResourceRequirements, requests, limits)
WIRE_MEMBERS(api::ContainerPort, container_port, host_port, host_ip, protocol)
WIRE_MEMBERS(api::Container, name, image, resources, ports, restart_always)
WIRE_MEMBERS(api::ClaimSpec, access_modes, selector, storage_bytes, volume_name, storage_class_name, volume_mode,
             volume_attributes_class_name)
WIRE_MEMBERS(api::ClaimVolume, name, claim_name, made)
WIRE_MEMBERS(api::PodAffinityTerm, label_selector, namespaces, namespace_selector, topology_key, match_label_keys,
             mismatch_label_keys)
WIRE_MEMBERS(api::WeightedPodAffinityTerm, weight, term)
WIRE_MEMBERS(api::PodAffinity, required, preferred)
WIRE_MEMBERS(api::TopologySpreadConstraint, max_skew, topology_key, schedule_anyway, label_selector, min_domains,
             honors_affinity, honors_taints, match_label_keys)
WIRE_MEMBERS(api::PodSpec, node_name, scheduler_name, restart_policy, containers, init_containers, host_network,
             node_selector, node_affinity, pod_affinity, pod_anti_affinity, topology_spread, has_resource_claims,
             tolerations, overhead, resources, priority, priority_class_name, runtime_class_name, preemption_policy,
             scheduling_gates, active_deadline_s, termination_grace_s, claim_volumes)
WIRE_MEMBERS(api::ContainerStatus, name, allocated, resources)
WIRE_MEMBERS(api::PodStatus, phase, reason, message, nominated_node_name, start_time, conditions, containers,
             init_containers, allocated, resources)
WIRE_MEMBERS(api::Pod, metadata, spec, status)
WIRE_MEMBERS(api::ContainerImage, names, size_bytes)
WIRE_MEMBERS(api::Node, metadata, unschedulable, taints, provider_id, capacity, allocatable, conditions, images)
WIRE_MEMBERS(model::Taint, key, value, effect)
WIRE_MEMBERS(model::Toleration, key, op, value, effect, any_effect)
WIRE_MEMBERS(model::NodeSelectorRequirement, key, op, values)
WIRE_MEMBERS(model::NodeSelectorTerm, match_expressions, match_fields)
WIRE_MEMBERS(model::PreferredSchedulingTerm, weight, preference)
WIRE_MEMBERS(model::NodeAffinity, required, preferred)

#undef WIRE_MEMBERS

template <typename T>
concept HasMembers = requires(const T& object) {
  Members<T>::of(object);
};

// The name at `index` of "a, b, c".
inline std::string_view name_at(std::string_view names, size_t index) {
  for (; index > 0; --index) names.remove_prefix(names.find(", ") + 2);
  return names.substr(0, names.find(','));
}

// For every member of T, and of what T's members are made of: whether any object seen has another value than a fresh
// one has.
class Coverage {
 public:
  template <typename T>
  void see(const T& value) {
    if constexpr (HasMembers<T>) {
      const T fresh;
      see_members(value, fresh, std::make_index_sequence<std::tuple_size_v<decltype(Members<T>::of(value))>>());
    }
  }
  template <typename T>
  void see(const std::optional<T>& value) {
    if (value) see(*value);
    else if constexpr (HasMembers<T>) see(T{});
  }
  template <typename T>
  void see(const std::vector<T>& values) {
    for (const T& value : values) see(value);
    if constexpr (HasMembers<T>) see(T{});  // so that all its members are known, even if no object has one
  }

  // Those that no object has set.
  std::vector<std::string> unset() const {
    std::vector<std::string> out;
    for (const auto& [name, set] : set_)
      if (!set) out.push_back(name);
    return out;
  }
  size_t size() const { return set_.size(); }

 private:
  template <typename T, size_t... I>
  void see_members(const T& value, const T& fresh, std::index_sequence<I...>) {
    const auto values = Members<T>::of(value), initial = Members<T>::of(fresh);
    (see_member(fmt::format("{}.{}", Members<T>::kType, name_at(Members<T>::kNames, I)), std::get<I>(values),
                std::get<I>(initial)),
     ...);
  }
  template <typename M>
  void see_member(const std::string& name, const M& value, const M& initial) {
    set_[name] |= !(value == initial);
    see(value);
  }

  std::map<std::string, bool> set_;
};

// Where two values differ, as paths; empty for equal ones.
template <typename T>
void differences(const T& a, const T& b, const std::string& path, std::vector<std::string>& out);

template <typename T, size_t... I>
void member_differences(const T& a, const T& b, const std::string& path, std::vector<std::string>& out,
                        std::index_sequence<I...>) {
  const auto left = Members<T>::of(a), right = Members<T>::of(b);
  (differences(std::get<I>(left), std::get<I>(right), fmt::format("{}.{}", path, name_at(Members<T>::kNames, I)), out),
   ...);
}

template <typename T>
void differences(const T& a, const T& b, const std::string& path, std::vector<std::string>& out) {
  if constexpr (HasMembers<T>) {
    member_differences(a, b, path, out, std::make_index_sequence<std::tuple_size_v<decltype(Members<T>::of(a))>>());
  } else {
    if (!(a == b)) out.push_back(path);
  }
}

}  // namespace berth::wire
