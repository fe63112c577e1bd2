#include "apps/scheduler/told.h"

namespace berth::apps {

void Told::put(const std::string& uid, Text text, Time at) {
  forget(uid);
  entries_[uid] = {std::move(text), at};
  by_time_.emplace(at, uid);
}

Told::News Told::tell(const std::string& uid, const Text& text, Time now) {
  const auto at = entries_.find(uid);
  const bool first = at == entries_.end();
  if (!first && *at->second.text == *text) return {};
  put(uid, text, now);
  return {.is_new = true, .first = first};
}

void Told::forget(const std::string& uid) {
  const auto at = entries_.find(uid);
  if (at == entries_.end()) return;
  by_time_.erase({at->second.at, uid});
  entries_.erase(at);
}

void Told::replace_all(const std::vector<std::pair<std::string, std::string>>& texts, Time now) {
  by_time_.clear();
  const absl::flat_hash_map<std::string, Entry> before = std::exchange(entries_, {});
  for (const auto& [uid, text] : texts) {
    const auto known = before.find(uid);
    const bool same = known != before.end() && *known->second.text == text;
    put(uid, std::make_shared<const std::string>(text),
        same ? known->second.at : now + Duration{-kRemindAfter.nanos / 2});
  }
}

std::vector<std::pair<std::string, Told::Text>> Told::due(Time now, size_t max) {
  std::vector<std::pair<std::string, Text>> out;
  while (out.size() < max && !by_time_.empty() && now - by_time_.begin()->first >= kRemindAfter) {
    const std::string uid = by_time_.begin()->second;
    Text text = entries_.at(uid).text;
    put(uid, text, now);
    out.emplace_back(uid, std::move(text));
  }
  return out;
}

}  // namespace berth::apps
