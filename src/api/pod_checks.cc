#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "api/decoders.h"
#include "api/names.h"
#include "api/requests.h"
#include "model/quantity.h"

namespace berth::api {
namespace {

std::string_view name_of(model::Protocol protocol) {
  switch (protocol) {
    case model::Protocol::kTcp: return "TCP";
    case model::Protocol::kUdp: return "UDP";
    case model::Protocol::kSctp: return "SCTP";
  }
  return "";
}

template <typename Use>
void with_item(const Reader& object, std::string_view list, size_t index, const Use& use) {
  with_member(object, list, [&](const Reader& array) {
    for (Items items(array); items.next();)
      if (items.index() == index) use(items.value());
  });
}

void check_names(const Reader& reader, const PodSpec& spec) {
  std::vector<std::string_view> seen;
  const auto check = [&](std::string_view list, const std::vector<Container>& containers) {
    for (size_t i = 0; i < containers.size(); ++i) {
      const std::string& name = containers[i].name;
      if (name.empty()) continue;
      if (std::find(seen.begin(), seen.end(), name) != seen.end())
        with_item(reader, list, i, [&](const Reader& at) {
          at.problem_at("name", duplicate_value(name) + " (container names must be unique in a pod)");
        });
      seen.push_back(name);
    }
  };
  check("containers", spec.containers);
  check("initContainers", spec.init_containers);
  const auto& gates = spec.scheduling_gates;
  for (size_t i = 0; i < gates.size(); ++i)
    if (!gates[i].empty() && std::find(gates.begin(), gates.begin() + static_cast<ptrdiff_t>(i), gates[i]) !=
                                 gates.begin() + static_cast<ptrdiff_t>(i))
      reader.problem_at("schedulingGates", i, duplicate_value(gates[i]));
}

// No host port twice: among the containers, and within each init container, since these run one after another.
// validatePodHostNetworkDeps looks at containers alone.
void check_host_ports(const Reader& reader, const PodSpec& spec) {
  std::set<std::tuple<model::Protocol, std::string, int32_t>> taken;
  const auto check = [&](std::string_view list, size_t index, const Container& container) {
    for (size_t i = 0; i < container.ports.size(); ++i) {
      const ContainerPort& port = container.ports[i];
      if (port.host_port == 0) continue;
      std::string wrong;
      if (spec.host_network && list == "containers" && port.container_port != 0 &&
          port.host_port != port.container_port)
        wrong = fmt::format("hostPort {} of container '{}' must match containerPort {} when `hostNetwork` is true",
                            port.host_port, container.name, port.container_port);
      else if (!taken.emplace(port.protocol, port.host_ip, port.host_port).second)
        wrong = duplicate_value(fmt::format("{}/{}", port.host_port, name_of(port.protocol)));
      if (wrong.empty()) continue;
      with_item(reader, list, index, [&](const Reader& at) {
        with_item(at, "ports", i, [&](const Reader& where) { where.problem_at("hostPort", wrong); });
      });
    }
  };
  for (size_t i = 0; i < spec.containers.size(); ++i) check("containers", i, spec.containers[i]);
  for (size_t i = 0; i < spec.init_containers.size(); ++i) {
    taken.clear();
    check("initContainers", i, spec.init_containers[i]);
  }
}

// A sum over containers says nothing where one of its amounts could not be read. `lists`: of the amounts that are
// summed.
bool amounts_are_sound(const Reader& spec, const std::string& resource, std::initializer_list<std::string_view> lists) {
  bool sound = true;
  const auto look = [&](const Reader& owner) {
    for (const std::string_view list : lists)
      sound = sound && owner.sound({"resources", list, std::string_view(resource)});
  };
  look(spec);
  for (const std::string_view list : {"containers", "initContainers"})
    with_member(spec, list, [&](const Reader& containers) {
      for (Items items(containers); items.next();) look(items.value());
    });
  return sound;
}

struct AmountProblem {
  std::string_view list;
  std::string resource;
  int64_t amount;
  std::string why;
};

// What is wrong with a request of the pod as a whole; empty for none. That a request which the file makes is within its
// limit was checked where it was read.
std::string check_pod_request(const std::string& name, int64_t amount, int64_t needed,
                              const model::ResourceList& limits, bool explicitly) {
  if (amount < needed)
    return fmt::format("must be greater than or equal to aggregate container requests of {}",
                       model::format_resource(name, needed));
  if (!explicitly && limits.contains(name) && amount > limits.get(name))
    return fmt::format("must be less than or equal to {} limit of {}; the containers together request as much", name,
                       model::format_resource(name, limits.get(name)));
  return "";
}

// validatePodResourceConsistency: pod-level amounts hold what the containers ask for. Of each resource a problem with
// the request, and one for each container that may use more than the pod.
std::vector<AmountProblem> pod_resource_problems(const Reader& reader, const Reader& resources, const PodSpec& spec) {
  std::vector<AmountProblem> out;
  const auto& [requests, limits] = *spec.resources;
  const model::ResourceList needed = sum_of_requests(spec);
  const auto requested = [&](std::string_view name) {
    bool found = false;
    with_member(resources, "requests", [&](const Reader& list) { found = has_member(list, name); });
    return found;
  };
  for (const auto& [name, amount] : requests) {
    if (!amounts_are_sound(reader, name, {"requests", "limits"})) continue;
    const std::string why = check_pod_request(name, amount, needed.get(name), limits, requested(name));
    if (!why.empty()) out.push_back({"requests", name, amount, why});
  }
  for (const auto& [name, amount] : limits) {
    if (!amounts_are_sound(reader, name, {"limits"})) continue;
    // Without a request of the pod's own, that the limit must be raised to hold the containers' was told above.
    const int64_t told_up_to = requested(name) ? amount : std::max({amount, requests.get(name), needed.get(name)});
    for (const Container& container : spec.containers) {
      const int64_t own = container.resources.limits.get(name);
      if (own > told_up_to)
        out.push_back(
            {"limits", name, amount,
             fmt::format("container '{}' may use {}, which must be less than or equal to pod limits of {}",
                         container.name, model::format_resource(name, own), model::format_resource(name, amount))});
    }
  }
  return out;
}

void check_pod_resources(const Reader& reader, const Reader& resources, const PodSpec& spec) {
  if (amounts_are_sound(reader, "cpu", {"requests", "limits"}) &&
      amounts_are_sound(reader, "memory", {"requests", "limits"}))
    check_huge_pages(resources, *spec.resources, sum_of_requests(spec));
  for (const AmountProblem& problem : pod_resource_problems(reader, resources, spec)) {
    const std::string text = invalid_value(model::format_resource(problem.resource, problem.amount), problem.why);
    bool there = false;
    with_member(resources, problem.list, [&](const Reader& list) {
      there = true;
      list.problem_at(problem.resource, text);
    });
    if (!there) resources.problem_at(problem.list, text);
  }
}

}  // namespace

void check_pod_spec(const Reader& reader, const PodSpec& spec) {
  if (spec.containers.empty() && reader.sound("containers"))
    reader.problem_at("containers", required_value("a pod needs at least one container"));
  check_names(reader, spec);
  check_host_ports(reader, spec);
  if (spec.resources)
    with_member(reader, "resources", [&](const Reader& resources) { check_pod_resources(reader, resources, spec); });
}

}  // namespace berth::api
