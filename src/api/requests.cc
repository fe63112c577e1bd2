#include "api/requests.h"

#include <algorithm>
#include <string_view>

namespace berth::api {
namespace {

using model::ResourceList;

bool is_huge_page(std::string_view name) { return name.starts_with("hugepages-"); }
bool is_pod_level(std::string_view name) { return name == "cpu" || name == "memory" || is_huge_page(name); }

const ContainerStatus* find_status(const std::vector<ContainerStatus>& statuses, std::string_view name) {
  for (const ContainerStatus& status : statuses)
    if (status.name == name) return &status;
  return nullptr;
}

bool resize_infeasible(const PodStatus& status) {
  const Condition* pending = status.condition("PodResizePending");
  return pending != nullptr && pending->reason == "Infeasible";
}

// determineEffectiveRequests: what a container counts for while a resize is under way.
ResourceList in_force(const ResourceList& desired, const ResourceList& actual, const ResourceList& allocated,
                      bool infeasible) {
  ResourceList out = infeasible ? ResourceList{} : desired;
  out.max(actual);
  out.max(allocated);
  return out;
}

ResourceList container_requests(const Container& container, const PodStatus& status) {
  // One name space: statuses of init containers override those of containers of the same name.
  const ContainerStatus* found = find_status(status.init_containers, container.name);
  if (found == nullptr) found = find_status(status.containers, container.name);
  if (found == nullptr || !found->resources) return container.resources.requests;
  return in_force(container.resources.requests, found->resources->requests, found->allocated,
                  resize_infeasible(status));
}

// AggregateContainerRequests, over whatever `amounts` says that a container counts for.
template <typename Amounts>
ResourceList aggregate(const PodSpec& spec, const Amounts& amounts) {
  ResourceList total;
  for (const Container& container : spec.containers) total.add(amounts(container));
  ResourceList sidecars, initial;
  for (const Container& container : spec.init_containers) {
    ResourceList mine = amounts(container);
    if (container.restart_always) {
      total.add(mine);
      sidecars.add(mine);
      mine = sidecars;
    } else {
      mine.add(sidecars);
    }
    initial.max(mine);
  }
  total.max(initial);
  return total;
}

}  // namespace

ResourceList effective_requests(const Pod& pod) {
  const PodSpec& spec = pod.spec;
  ResourceList total = aggregate(spec, [&](const Container& container) {
    const bool init = &container >= spec.init_containers.data() &&
                      &container < spec.init_containers.data() + spec.init_containers.size();
    return init && !container.restart_always ? container.resources.requests : container_requests(container, pod.status);
  });
  if (spec.resources) {
    const ResourceList& desired = spec.resources->requests;
    const ResourceList pod_level =
        !pod.status.resources
            ? desired
            : in_force(desired, pod.status.resources->requests, pod.status.allocated, resize_infeasible(pod.status));
    for (const auto& [name, amount] : desired)
      if (is_pod_level(name)) total.set(name, pod_level.get(name));
  }
  total.add(spec.overhead);
  total.add("pods", 1);
  return total;
}

ResourceList sum_of_requests(const PodSpec& spec) {
  return aggregate(spec, [](const Container& container) { return container.resources.requests; });
}

ResourceList sum_of_limits(const PodSpec& spec) {
  return aggregate(spec, [](const Container& container) { return container.resources.limits; });
}

void default_pod_resources(PodSpec& spec) {
  if (!spec.resources || (spec.resources->limits.empty() && spec.resources->requests.empty())) return;
  ResourceRequirements& own = *spec.resources;
  for (const auto& [name, amount] : sum_of_limits(spec))
    if (is_huge_page(name) && !own.requests.contains(name) && !own.limits.contains(name)) own.limits.set(name, amount);
  if (own.limits.empty()) return;
  for (const auto& [name, amount] : sum_of_requests(spec))
    if ((name == "cpu" || name == "memory") && !own.requests.contains(name)) own.requests.set(name, amount);
  for (const auto& [name, amount] : own.limits)
    if (is_pod_level(name) && !own.requests.contains(name)) own.requests.set(name, amount);
}

std::vector<model::HostPort> host_ports(const PodSpec& spec) {
  std::vector<model::HostPort> out;
  const auto take = [&](const Container& container) {
    for (const ContainerPort& port : container.ports) {
      if (port.host_port <= 0) continue;
      model::HostPort host{port.host_ip.empty() ? "0.0.0.0" : port.host_ip, port.protocol, port.host_port};
      if (std::find(out.begin(), out.end(), host) == out.end()) out.push_back(std::move(host));
    }
  };
  for (const Container& container : spec.init_containers)
    if (container.restart_always) take(container);
  for (const Container& container : spec.containers) take(container);
  return out;
}

}  // namespace berth::api
