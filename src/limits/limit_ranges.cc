#include "limits/limit_ranges.h"

#include <fmt/format.h>

#include <utility>

#include "limits/limit_range.h"

namespace berth::limits {
namespace {

using OfNamespaces = std::map<std::string, std::map<std::string, api::LimitRange>>;

const std::map<std::string, api::LimitRange>& ranges_of(const OfNamespaces& all, const std::string& namespace_name) {
  static const std::map<std::string, api::LimitRange> none;
  const auto at = all.find(namespace_name);
  return at == all.end() ? none : at->second;
}

}  // namespace

std::string Refusal::message(std::string_view resource, std::string_view kind, std::string_view name) const {
  return invalid ? fmt::format("{} \"{}\" is invalid: {}", kind, name, text)
                 : fmt::format("{} \"{}\" is forbidden: {}", resource, name, text);
}

void LimitRanges::put(api::LimitRange range) {
  const std::string space = range.metadata.namespace_name, name = range.metadata.name;
  all_[space].insert_or_assign(name, std::move(range));
}

void LimitRanges::remove(const std::string& namespace_name, const std::string& name) {
  const auto at = all_.find(namespace_name);
  if (at == all_.end()) return;
  at->second.erase(name);
  if (at->second.empty()) all_.erase(at);
}

const api::LimitRange* LimitRanges::find(const std::string& namespace_name, const std::string& name) const {
  const std::map<std::string, api::LimitRange>& ranges = ranges_of(all_, namespace_name);
  const auto at = ranges.find(name);
  return at == ranges.end() ? nullptr : &at->second;
}

void LimitRanges::complete(const std::string& namespace_name, api::PodSpec& spec) const {
  for (const auto& [name, range] : ranges_of(all_, namespace_name)) set_defaults(range, spec);
}

std::optional<Refusal> LimitRanges::refusal(const std::string& namespace_name, const api::PodSpec& spec) const {
  if (!any(namespace_name)) return std::nullopt;
  if (std::string why = invalid_with_defaults(spec); !why.empty())
    return Refusal{.invalid = true, .text = std::move(why)};
  for (const auto& [name, range] : ranges_of(all_, namespace_name))
    if (std::string why = limits::refusal(range, spec); !why.empty())
      return Refusal{.invalid = false, .text = std::move(why)};
  return std::nullopt;
}

std::optional<Refusal> LimitRanges::refusal(const std::string& namespace_name, const api::ClaimSpec& spec) const {
  for (const auto& [name, range] : ranges_of(all_, namespace_name))
    if (std::string why = limits::refusal(range, spec); !why.empty())
      return Refusal{.invalid = false, .text = std::move(why)};
  return std::nullopt;
}

}  // namespace berth::limits
