#include "api/queue_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "api/decoders.h"
#include "model/quantity.h"

namespace berth::api {
namespace {

// As exactly as an int64 holds it.
std::optional<double> amount_of(const std::string& text) {
  for (const int scale : {9, 6, 3, 0})
    if (const Result<int64_t> amount = model::parse_quantity(text, scale))
      return *amount < 0 ? std::nullopt : std::optional(static_cast<double>(*amount) / std::pow(10.0, scale));
  return std::nullopt;
}

bool is_quantity(const Reader& value) {
  return value.type() == JsonType::kString || value.type() == JsonType::kInteger || value.type() == JsonType::kFloat;
}

void read_usage(const Reader& status, std::optional<model::UsedOfLate>& out) {
  model::UsedOfLate used;
  bool told = false;
  with_member(status, "lastUpdate", [&](const Reader& r) {
    std::string_view text;
    if (r.type() != JsonType::kString || !r.read(text)) return;
    const Result<Time> time = parse_rfc3339(text);
    if (time) used.until = std::max(Time{}, *time);
    told = time.has_value();
  });
  with_member(status, "consumedResources", [&](const Reader& r) {
    for (Members members(r); members.next();) {
      std::string text;
      if (!is_quantity(members.value()) || !members.value().read_string_or_number(text)) continue;
      if (const std::optional<double> amount = amount_of(text)) used.amounts[std::string(members.key())] = *amount;
    }
  });
  if (told) out = std::move(used);
}

}  // namespace

std::optional<model::UsedOfLate> used_of_late(const Reader& object) {
  std::optional<model::UsedOfLate> out;
  with_member(object, "status", [&](const Reader& status) {
    with_member(status, "fairSharing", [&](const Reader& sharing) {
      with_member(sharing, "admissionFairSharingStatus", [&](const Reader& usage) { read_usage(usage, out); });
    });
  });
  return out;
}

std::string usage_text(double amount) {
  constexpr double kMost = 9e18;  // that is read
  std::string out = fmt::format("{:.9f}", std::clamp(amount, 0.0, kMost));
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

}  // namespace berth::api
