#include "engine/pod_class.h"

#include <algorithm>
#include <set>

namespace berth::engine {
namespace {

constexpr int64_t kDefaultCpuMillis = 100;
constexpr int64_t kDefaultMemoryBytes = 200LL * 1024 * 1024;

// The node names that every required term allows through matchFields, as NodeAffinity's PreFilter derives them: nothing
// is known (false) as soon as one term leaves the name open.
bool required_names(const model::NodeAffinity& affinity, std::vector<std::string>& out) {
  if (!affinity.required) return false;
  std::set<std::string> all;
  for (const model::NodeSelectorTerm& term : *affinity.required) {
    bool restricted = false;
    std::set<std::string> names;
    for (const model::NodeSelectorRequirement& field : term.match_fields) {
      if (field.key != "metadata.name" || field.op != model::NodeSelectorOperator::kIn) continue;
      const std::set<std::string> values(field.values.begin(), field.values.end());
      if (!restricted) names = values;
      else std::erase_if(names, [&](const std::string& name) { return !values.contains(name); });
      restricted = true;
    }
    if (!restricted) return false;
    all.merge(names);
  }
  out.assign(all.begin(), all.end());
  return true;
}

}  // namespace

bool selects(const PodClass& cls, const model::Node& node) {
  const model::SchedulingSpec& spec = *cls.spec;
  for (const auto& [key, wanted] : spec.node_selector) {
    const std::string* value = node.labels.find(key);
    if (value == nullptr || *value != wanted) return false;
  }
  if (!spec.affinity.required) return true;
  return std::any_of(spec.affinity.required->begin(), spec.affinity.required->end(),
                     [&](const model::NodeSelectorTerm& term) { return term.matches(node.labels, node.name); });
}

PodClass compile_class(std::shared_ptr<const model::SchedulingSpec> spec, ResourceTable& resources) {
  PodClass out;
  for (const auto& [name, amount] : spec->requests) {
    if (amount <= 0) continue;
    const ResourceId id = resources.intern(name);
    out.requests.push_back({id, std::min(amount, kMaxAmount)});
    out.requests_gpu |= resources.is_gpu(id);
  }
  out.shares_gpu = spec->gpu_share.asked();
  out.requests_gpu |= out.shares_gpu;
  std::sort(out.requests.begin(), out.requests.end(), [](auto& a, auto& b) { return a.id < b.id; });
  out.packs =
      spec->placement == model::Placement::kPack || (spec->placement == model::Placement::kDefault && out.requests_gpu);
  const int64_t cpu = out.request(kCpu), memory = out.request(kMemory);
  out.scored_cpu_millis = cpu > 0 ? cpu : kDefaultCpuMillis;
  out.scored_memory_bytes = memory > 0 ? memory : kDefaultMemoryBytes;
  out.restricts_node_names = required_names(spec->affinity, out.required_node_names);
  for (const auto& term : spec->affinity.preferred) out.preferred_weight_sum += std::max(term.weight, 0);
  out.spec = std::move(spec);
  return out;
}

}  // namespace berth::engine
