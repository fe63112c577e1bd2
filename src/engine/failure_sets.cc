#include "engine/failure_sets.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::engine {

FailureSetId FailureSets::intern(const Reasons& reasons, const ResourceTable& resources) {
  if (reasons.empty()) return kFits;
  scratch_.clear();
  for (const Reason& reason : reasons)
    scratch_.emplace_back(reason.info, reason.info->names_resource ? reason.resource.value : 0);
  const auto [at, added] = ids_.try_emplace(scratch_, FailureSetId{static_cast<uint32_t>(sets_.size())});
  if (added) {
    std::vector<std::string> texts;
    bool helped = true;
    for (const Reason& reason : reasons) {
      helped &= reason.info->preemption_helps;
      std::string text(reason.info->text);
      if (reason.info->names_resource) text += " " + resources.name(reason.resource);
      texts.push_back(std::move(text));
    }
    sets_.push_back(std::move(texts));
    helped_.push_back(helped);
  }
  return at->second;
}

std::string fit_message(const FailureCounts& counts, const FailureSets& sets) {
  if (counts.nodes == 0) return "no nodes available to schedule pods";
  std::map<std::string, uint64_t> by_text;
  for (uint32_t id = 1; id < counts.by_set.size(); ++id) {
    if (counts.by_set[id] == 0) continue;
    for (const std::string& text : sets.texts(FailureSetId{id})) by_text[text] += counts.by_set[id];
  }
  return unavailable_message(counts.nodes, by_text);
}

std::string unavailable_message(uint64_t nodes, const std::map<std::string, uint64_t>& by_text) {
  std::vector<std::string> parts;
  parts.reserve(by_text.size());
  for (const auto& [text, count] : by_text)
    if (count > 0) parts.push_back(fmt::format("{} {}", count, text));
  std::sort(parts.begin(), parts.end());
  std::string out = fmt::format("0/{} nodes are available:", nodes);
  for (size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? " " : ", ") + parts[i];
  return out + ".";
}

std::string objection_message(const std::string& objection, size_t nodes) {
  if (nodes == 0) return "no nodes available to schedule pods";
  if (objection.ends_with('.')) return fmt::format("0/{} nodes are available: {}", nodes, objection);
  return fmt::format("0/{} nodes are available: {}. not found", nodes, objection);
}

}  // namespace berth::engine
