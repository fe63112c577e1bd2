#include "model/taint.h"

#include <algorithm>
#include <charconv>

namespace berth::model {
namespace {

// Whole-string int64, as strconv.ParseInt reads it.
bool read_int(std::string_view text, int64_t& out) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

bool compare(const Toleration& toleration, const Taint& taint) {
  int64_t limit = 0, actual = 0;
  if (!read_int(toleration.value, limit) || !read_int(taint.value, actual)) return false;
  return toleration.op == TolerationOperator::kLt ? actual < limit : actual > limit;
}

}  // namespace

bool Toleration::tolerates(const Taint& taint) const {
  if (!any_effect && effect != taint.effect) return false;
  if (!key.empty() && key != taint.key) return false;
  switch (op) {
    case TolerationOperator::kExists: return true;
    case TolerationOperator::kEqual: return value == taint.value;
    case TolerationOperator::kLt:
    case TolerationOperator::kGt: return compare(*this, taint);
  }
  return false;
}

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const Toleration& toleration) { return toleration.tolerates(taint); });
}

size_t first_untolerated(const std::vector<Taint>& taints, const std::vector<Toleration>& tolerations) {
  const auto at = std::find_if(taints.begin(), taints.end(), [&](const Taint& taint) {
    return taint.effect != TaintEffect::kPreferNoSchedule && !tolerates(tolerations, taint);
  });
  return static_cast<size_t>(at - taints.begin());
}

std::string_view to_string(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kNoSchedule: return "NoSchedule";
    case TaintEffect::kPreferNoSchedule: return "PreferNoSchedule";
    case TaintEffect::kNoExecute: return "NoExecute";
  }
  return "";
}

std::string to_string(const Taint& taint) {
  std::string out = taint.key;
  if (!taint.value.empty()) out += "=" + taint.value;
  return out + ":" + std::string(to_string(taint.effect));
}

}  // namespace berth::model
