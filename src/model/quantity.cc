#include "model/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/int128.h"
#include "model/gpu.h"

namespace berth::model {
namespace {

struct Suffix {
  std::string_view text;
  int base;  // 2 or 10
  int exponent;
};

// clang-format off
constexpr std::array<Suffix, 15> kSuffixes{{{"n", 10, -9}, {"u", 10, -6}, {"m", 10, -3}, {"", 10, 0}, {"k", 10, 3},
                                            {"M", 10, 6}, {"G", 10, 9}, {"T", 10, 12}, {"P", 10, 15}, {"E", 10, 18},
                                            {"Ki", 2, 10}, {"Mi", 2, 20}, {"Gi", 2, 30}, {"Ti", 2, 40}, {"Pi", 2, 50}}};
// clang-format on
constexpr int kDigitsMax = 28;
constexpr Suffix kExbi{"Ei", 2, 60};

int64_t saturating_multiply(int64_t amount, int64_t by) {
  int64_t out = 0;
  return __builtin_mul_overflow(amount, by, &out) ? INT64_MAX : out;  // amounts are not negative
}

// Decimal exponent "e3"/"E-2" as a Suffix, or nothing. Exponents beyond any int64 are clamped and overflow later.
bool read_exponent(std::string_view text, Suffix& out) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return false;
  size_t at = 1;
  const bool negative = text[at] == '-';
  if (text[at] == '-' || text[at] == '+') ++at;
  if (at == text.size()) return false;
  int exponent = 0;
  for (; at < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9') return false;
    if (exponent < 10000) exponent = exponent * 10 + (text[at] - '0');
  }
  out = {text, 10, negative ? -exponent : exponent};
  return true;
}

bool find_suffix(std::string_view text, Suffix& out) {
  for (const Suffix& suffix : kSuffixes)
    if (suffix.text == text) return out = suffix, true;
  if (text == kExbi.text) return out = kExbi, true;
  return read_exponent(text, out);
}

// value · 10^power, rounded up (away from zero); false on overflow of int64.
bool scale_decimal(Uint128 value, int power, int64_t& out) {
  constexpr Uint128 kMax = INT64_MAX;
  bool inexact = false;
  for (; power < 0 && value != 0; ++power) {
    inexact |= value % 10 != 0;
    value /= 10;
  }
  value += inexact ? 1 : 0;
  for (; power > 0 && value != 0; --power) {
    value *= 10;
    if (value > kMax) return false;
  }
  if (value > kMax) return false;
  out = static_cast<int64_t>(value);
  return true;
}

struct Number {
  Uint128 digits = 0;
  int decimals = 0;  // negative: digits before the point that were left out
  bool negative = false;
  bool cut = false;  // digits that are not 0 were left out: the number is larger than `digits`
  std::string_view suffix;
};

// Sign, digits and decimals; false when there are no digits. Those beyond the 28th, which would leave no room in 128
// bits for the suffix, are left out.
bool read_number(std::string_view text, Number& out) {
  size_t at = 0;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) out.negative = text[at++] == '-';
  bool any = false, point = false;
  int significant = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (significant > 0 || c != '0') ++significant;
    if (significant > kDigitsMax) {
      out.cut |= c != '0';
      if (!point) --out.decimals;
      continue;
    }
    out.digits = out.digits * 10 + static_cast<unsigned>(c - '0');
    if (point) ++out.decimals;
  }
  out.suffix = text.substr(at);
  return any;
}

}  // namespace

Result<int64_t> parse_quantity(std::string_view text, int scale, Overflow overflow) {
  Number number;
  Suffix suffix{};
  const bool read = read_number(text, number) && find_suffix(number.suffix, suffix);
  const bool too_long = number.cut || number.decimals < 0;
  if (!read || (too_long && overflow == Overflow::kRefused))
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("'{}' is not a quantity; write a number with an optional suffix, such as 500m, 2, 64Gi or 1e3",
                    text));
  int power = scale - number.decimals + (suffix.base == 10 ? suffix.exponent : 0);
  Uint128 value = number.digits + (number.cut ? 1 : 0);
  bool too_large = false;
  if (suffix.base == 2 && value != 0) {
    // 28 digits need 94 bits; multiply step by step, dividing out decimals first where that is exact.
    while (power < 0 && value % 10 == 0) value /= 10, ++power;
    too_large = value >> (127 - suffix.exponent) != 0;
    value <<= suffix.exponent;
  }
  int64_t result = 0;
  if (too_large || !scale_decimal(value, power, result)) {
    if (overflow == Overflow::kRefused)
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("'{}' is larger than any machine has (the limit is 2^63-1)", text));
    result = INT64_MAX;
  }
  return number.negative ? -result : result;
}

Result<int64_t> parse_resource(std::string_view name, std::string_view text, Overflow overflow) {
  BERTH_TRY(value, parse_quantity(text, name == "cpu" ? 3 : 0, overflow));
  if (value < 0)
    return fail(ErrorCode::kInvalidInput, fmt::format("'{}' is negative; a resource must be 0 or more", text));
  return value;
}

std::string format_resource(std::string_view name, int64_t value) {
  if (name == "cpu") return value % 1000 == 0 ? fmt::format("{}", value / 1000) : fmt::format("{}m", value);
  const bool bytes = name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
  if (!bytes || value == 0) return fmt::format("{}", value);
  static constexpr std::array<std::string_view, 7> kUnits{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  size_t unit = 0;
  while (unit + 1 < kUnits.size() && value % 1024 == 0) value /= 1024, ++unit;
  return fmt::format("{}{}", value, kUnits[unit]);
}

int64_t quota_units(std::string_view name) {
  if (name == "cpu") return 1000;
  return name == kWholeGpuResource ? kWholeGpu : 1;
}

int64_t to_quota(std::string_view name, int64_t amount) {
  return name == kWholeGpuResource ? saturating_multiply(amount, kWholeGpu) : amount;
}

Result<int64_t> parse_quota(std::string_view name, std::string_view text) {
  BERTH_TRY(amount, parse_resource(name, text));
  return name == kWholeGpuResource ? parse_quantity(text, 6, Overflow::kSaturates) : amount;
}

std::string format_quota(std::string_view name, int64_t value) {
  if (name != kWholeGpuResource || value == INT64_MAX) return format_resource(name, value);
  if (value % kWholeGpu == 0) return fmt::format("{}", value / kWholeGpu);
  return value % 1000 == 0 ? fmt::format("{}m", value / 1000) : fmt::format("{}u", value);
}

bool is_extended_resource(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view domain = name.substr(0, slash);
  return domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io") && !name.starts_with("requests.");
}

bool is_gpu_resource(std::string_view name) {
  constexpr std::string_view kNames[] = {"nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "google.com/tpu",
                                         "habana.ai/gaudi"};
  // Of names that go on with a partition, a model or a part of the device.
  constexpr std::string_view kBeginnings[] = {
      "nvidia.com/mig-", "amd.com/spx_",          "amd.com/dpx_",      "amd.com/qpx_",      "amd.com/cpx_",
      "gpu.intel.com/",  "aws.amazon.com/neuron", "huawei.com/Ascend", "cambricon.com/mlu", "mthreads.com/",
      "enflame.com/",    "metax-tech.com/",       "hygon.com/dcu"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

int64_t gpu_micros(std::string_view name, int64_t quota) {
  return is_gpu_resource(name) ? saturating_multiply(quota, kWholeGpu / quota_units(name)) : 0;
}

}  // namespace berth::model
