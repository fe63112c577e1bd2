#include "apps/scheduler/set_aside.h"

#include <fmt/format.h>

namespace berth::apps {

void SetAside::add(std::string_view kind, const std::string& name, std::string why) {
  const std::lock_guard lock(mutex_);
  why_[fmt::format("{} {}", kind, name)] = std::move(why);
  count_ = why_.size();
}

void SetAside::remove(std::string_view kind, std::string_view namespace_name, std::string_view name) {
  if (count_ == 0) return;
  const std::lock_guard lock(mutex_);
  why_.erase(fmt::format("{} {}{}{}", kind, namespace_name, namespace_name.empty() ? "" : "/", name));
  count_ = why_.size();
}

void SetAside::clear(std::string_view kind) {
  if (count_ == 0) return;
  const std::lock_guard lock(mutex_);
  const std::string prefix = fmt::format("{} ", kind);
  std::erase_if(why_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
  count_ = why_.size();
}

std::vector<std::string> SetAside::lines() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [what, why] : why_) out.push_back(fmt::format("{}: {}", what, why));
  return out;
}

}  // namespace berth::apps
