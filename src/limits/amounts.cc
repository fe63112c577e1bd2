#include "limits/amounts.h"

#include <fmt/format.h>

#include <array>

#include "api/limits.h"
#include "model/quantity.h"

namespace berth::limits {
namespace {

// In thousands, as far as they are whole: "10k".
std::string decimal_text(int64_t value) {
  static constexpr std::array<std::string_view, 7> kUnits{"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  while (value != 0 && unit + 1 < kUnits.size() && value % 1000 == 0) value /= 1000, ++unit;
  return fmt::format("{}{}", value, kUnits[unit]);
}

}  // namespace

std::string amount_text(std::string_view resource, int64_t amount) {
  const std::string_view unit = api::quota_unit(resource);
  if (unit == "storage") return model::format_resource("memory", amount);
  if (unit == "memory" || unit == "ephemeral-storage" || unit.starts_with("hugepages-"))
    return model::format_resource(unit, amount);
  if (unit != "cpu") return decimal_text(amount);
  return amount % 1000 == 0 ? decimal_text(amount / 1000) : fmt::format("{}m", amount);
}

std::string amounts_text(const model::ResourceList& amounts) {
  std::string out;
  for (const auto& [resource, amount] : amounts)
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", resource, amount_text(resource, amount));
  return out;
}

}  // namespace berth::limits
