#include "webhook/pod_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "api/names.h"
#include "api/runtime_estimate.h"
#include "base/printable.h"
#include "model/quantity.h"
#include "webhook/object.h"

namespace berth::webhook {
namespace {

constexpr std::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kOurs = "berth.dev/", kGpuDevices = "berth.dev/gpu-devices";
constexpr int64_t kMicros = 1'000'000, kMiB = int64_t{1} << 20;

// Annotations that ask for a share of a GPU: Berth's, and KAI's, which Berth reads too. The first that is there counts.
struct Share {
  std::string_view key;
  std::string_view characters;  // of which the number consists; empty: it may have a unit
  int scale = 0;                // of the quantity
  int64_t least = 1, most = std::numeric_limits<int64_t>::max();
};
constexpr Share kShares[] = {{"berth.dev/gpu-fraction", "0123456789.", 6, 1, kMicros},
                             {"berth.dev/gpu-memory", "", 0, kMiB},
                             {"gpu-fraction", "0123456789.", 6, 1, kMicros},
                             {"gpu-memory", "0123456789"}};  // MiB

using Amounts = std::map<std::string, int64_t>;

int64_t add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// An amount as the API server accepts it; nothing for what it refuses itself.
std::optional<int64_t> amount_of(const std::string& resource, const Json& value) {
  if (!value.is_string() && !value.is_number_integer()) return {};
  const auto amount = model::parse_resource(resource, value.is_string() ? value.get<std::string>() : value.dump());
  return amount ? std::optional(*amount) : std::nullopt;
}

Amounts gpus_in(const Json* amounts) {
  Amounts out;
  if (amounts == nullptr) return out;
  for (const auto& [resource, value] : amounts->items())
    if (model::is_gpu_resource(resource))
      if (const auto amount = amount_of(resource, value)) out[resource] = *amount;
  return out;
}

// The GPUs of one container. Where a request differs from the limit, the problem is found.
Amounts gpus_of_container(const Json& container, const std::string& path, Findings& findings) {
  const Json* resources = part_of(container, "resources");
  Amounts limits = gpus_in(part_of(resources, "limits"));
  for (const auto& [resource, request] : gpus_in(part_of(resources, "requests"))) {
    const auto limit = limits.find(resource);
    const std::string at = api::append_key(path + ".resources.requests", resource);
    if (limit == limits.end())
      findings.invalid.push_back(fmt::format("{}: {} without a limit; give the same in limits, or only there",
                                             printable(at), model::format_resource(resource, request)));
    else if (limit->second != request)
      findings.invalid.push_back(fmt::format("{}: {} differs from the limit, {}; a GPU cannot be overcommitted",
                                             printable(at), model::format_resource(resource, request),
                                             model::format_resource(resource, limit->second)));
    if (limit == limits.end()) limits[resource] = request;
  }
  return limits;
}

// A container that reaches for GPUs and has none; nothing if it does not. Of variables with one name kubelet takes the
// last.
std::optional<Reach> reach_of(const Json& container, const std::string& path) {
  const Json* last = nullptr;
  for (const Json& variable : list_of(&container, "env"))
    if (text_of(variable, "name") == kVisibleDevices) last = &variable;
  if (last == nullptr) return std::nullopt;
  const std::string value = text_of(last, "value");
  const bool certain = part_of(last, "valueFrom") == nullptr;
  if (certain && (value.empty() || value == "void" || value == "none")) return std::nullopt;
  return Reach{
      fmt::format("{}: {}={} reaches for GPUs that it does not request; ask for nvidia.com/gpu in limits, or set none",
                  printable(path), kVisibleDevices, certain ? printable(value, 40) : "(from elsewhere)"),
      certain};
}

// A share that the scheduler cannot read is none.
bool asks_for_share(const Json& pod) {
  const auto* const share =
      std::ranges::find_if(kShares, [&](const Share& each) { return has_annotation(pod, each.key); });
  if (share == std::end(kShares)) return false;
  const std::string text = annotation_of(pod, share->key);
  if (!share->characters.empty() && text.find_first_not_of(share->characters) != std::string::npos) return false;
  const auto amount = model::parse_quantity(text, share->scale);
  return amount && *amount >= share->least && *amount <= share->most;
}

bool asks_for_devices(const Json& pod, const Json& container) {
  if (asks_for_share(pod)) return true;
  return !list_of(part_of(container, "resources"), "claims").empty();
}

class Check {
 public:
  Check(const Json& pod, std::string_view path, const Rules& rules, Findings& findings)
      : pod_(pod), path_(path), rules_(rules), findings_(findings) {}

  void run() {
    const Json* spec = part_of(pod_, "spec");
    container_list(list_of(spec, "initContainers"), "initContainers");
    container_list(list_of(spec, "containers"), "containers");
    visible_devices();
    annotations(!text_of(spec, "nodeName").empty());
    for (const auto& [resource, most] : rules_.node_max) {
      const int64_t asked = std::max(running_[resource], first_[resource]);
      if (asked > most)
        findings_.invalid.push_back(fmt::format(
            "{}: asks for {} {}, and no node has more than {}; ask for less, or divide it into more pods", path_,
            model::format_resource(resource, asked), printable(resource), model::format_resource(resource, most)));
    }
  }

 private:
  // What was meant for Berth, and is not heeded.
  void annotations(bool bound) {
    const Json* all = part_of(part_of(pod_, "metadata"), "annotations");
    if (all == nullptr) return;
    static const std::vector<std::string_view> shares{"gpu-fraction", "gpu-memory"};
    for (const auto& [key, value] : all->items()) {
      const std::string_view prefix = key.starts_with(kOurs) ? kOurs : "";
      const std::string_view near = api::closest(std::string_view(key).substr(prefix.size()), shares);
      if (!near.empty() && !key.ends_with(near))
        findings_.warnings.push_back(
            fmt::format("annotation {} means nothing to Berth; did you mean {}{}?", printable(key, 80), prefix, near));
      const std::string estimate = key == api::kRuntimeEstimateAnnotation && value.is_string()
                                       ? api::runtime_estimate_problem(value.get_ref<const std::string&>())
                                       : "";
      if (!estimate.empty())
        findings_.warnings.push_back(fmt::format("annotation {}: {}; it has no effect", key, estimate));
      if (key == kGpuDevices && !bound)
        findings_.warnings.push_back(fmt::format(
            "annotation {} is ignored: which devices a pod gets Berth chooses, and writes there with the bind", key));
    }
  }

  // Init containers run one after the other, before the rest; one that is always restarted runs beside all that come
  // after it (KEP-753).
  void container_list(const Json& containers, const char* list) {
    for (size_t i = 0; i < containers.size(); ++i) {
      const Json& container = containers[i];
      const std::string path = fmt::format("{}.{}[{}]", path_, list, i);
      const Amounts gpus = gpus_of_container(container, path, findings_);
      const bool beside = list == std::string_view("containers") || text_of(container, "restartPolicy") == "Always";
      for (const auto& [resource, amount] : gpus) {
        if (beside) running_[resource] = add(running_[resource], amount);
        else first_[resource] = std::max(first_[resource], add(running_[resource], amount));
      }
    }
  }

  void visible_devices() {
    if (rules_.unrequested_gpus == UnrequestedGpus::kIgnore) return;
    for (Reach& reach : unrequested_gpus(pod_, path_)) {
      const bool deny = reach.certain && rules_.unrequested_gpus == UnrequestedGpus::kDeny;
      (deny ? findings_.forbidden : findings_.warnings).push_back(std::move(reach.text));
    }
  }

  const Json& pod_;
  const std::string path_;
  const Rules& rules_;
  Findings& findings_;
  Amounts running_, first_;
};

}  // namespace

std::vector<Reach> unrequested_gpus(const Json& pod, std::string_view path) {
  std::vector<Reach> out;
  for (const char* list : {"initContainers", "containers"}) {
    const Json& containers = list_of(part_of(pod, "spec"), list);
    for (size_t i = 0; i < containers.size(); ++i) {
      const std::string at = fmt::format("{}.{}[{}]", path, list, i);
      std::optional<Reach> reach = reach_of(containers[i], at);
      if (!reach || asks_for_devices(pod, containers[i])) continue;
      Findings ignored;
      const Amounts gpus = gpus_of_container(containers[i], at, ignored);
      if (std::ranges::none_of(gpus, [](const auto& gpu) { return gpu.second > 0; })) out.push_back(std::move(*reach));
    }
  }
  return out;
}

void check_pod(const Json& pod, std::string_view path, const Rules& rules, Findings& findings) {
  Check(pod, path, rules, findings).run();
}

}  // namespace berth::webhook
