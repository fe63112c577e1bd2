#include "scenario/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/printable.h"

namespace berth::scenario {
namespace {

struct Group {
  std::vector<std::string> nodes;
  const engine::NodeExplanation* sample = nullptr;
};

std::string_view mode_text(std::optional<model::DeviceMode> mode) { return mode ? to_string(*mode) : ""; }

std::string key_of(const engine::NodeExplanation& node) {
  std::string key = fmt::format("{}\n{}\n", node.gpu_limit, mode_text(node.device_mode));
  for (const engine::NodeReason& reason : node.reasons) key += reason.text + '\n' + reason.detail + '\n';
  return key;
}

std::string title(const Group& group, size_t names_max) {
  std::string names;
  for (size_t i = 0; i < std::min(group.nodes.size(), names_max); ++i) names += (i == 0 ? "" : ", ") + group.nodes[i];
  if (group.nodes.size() == 1) return names;
  if (group.nodes.size() > names_max) names += fmt::format(", … and {} more", group.nodes.size() - names_max);
  return fmt::format("{} nodes: {}", group.nodes.size(), names);
}

}  // namespace

std::vector<std::string> verdict_lines(const engine::Explanation& explanation, const std::string& indent,
                                       size_t names_max) {
  std::map<std::string, Group> by_key;
  for (const engine::NodeExplanation& node : explanation.nodes) {
    Group& group = by_key[key_of(node)];
    group.nodes.push_back(node.node);
    group.sample = &node;
  }
  std::vector<const Group*> groups;
  for (const auto& [key, group] : by_key) groups.push_back(&group);
  std::sort(groups.begin(), groups.end(), [](const Group* a, const Group* b) {
    return a->nodes.size() != b->nodes.size() ? a->nodes.size() > b->nodes.size() : a->nodes.front() < b->nodes.front();
  });
  std::vector<std::string> lines;
  for (const Group* group : groups) {
    lines.push_back(indent + printable(title(*group, names_max)));
    if (group->sample->reasons.empty()) lines.push_back(indent + "  fits");
    if (!group->sample->gpu_limit.empty())
      lines.push_back(fmt::format("{}  GPU limit {}", indent, group->sample->gpu_limit));
    if (group->sample->device_mode)
      lines.push_back(fmt::format("{}  GPU mode {}", indent, mode_text(group->sample->device_mode)));
    for (const engine::NodeReason& reason : group->sample->reasons)
      lines.push_back(indent + "  " +
                      printable(reason.detail.empty() ? reason.text : reason.text + ": " + reason.detail));
  }
  return lines;
}

std::string forecast_text(const engine::Forecast& forecast) {
  if (!forecast.p50 || !forecast.p90) return "nobody can tell when it starts: " + forecast.unknown;
  const auto after = [](Duration duration) {
    return duration < Duration::seconds(1) ? std::string("now") : "in " + format_duration(duration);
  };
  std::string out = "starts " + after(*forecast.p50);
  if (forecast.p90 != forecast.p50) out += ", at the latest " + after(*forecast.p90);
  return out + fmt::format("; {} of {} in its way declare a runtime", forecast.declaring, forecast.blockers);
}

}  // namespace berth::scenario
