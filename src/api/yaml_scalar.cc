#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "api/yaml_text.h"

namespace berth::api {
namespace {

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// strconv.ParseInt and ParseUint with base 0: sign, 0x, 0o, 0b and leading-zero octal; as decimal text.
bool read_integer(std::string_view text, std::string& out) {
  bool negative = false;
  bool sign = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    sign = true;
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = text[1];
    base = mark == 'x' || mark == 'X' ? 16 : mark == 'b' || mark == 'B' ? 2 : 8;
    text.remove_prefix(base == 8 && mark != 'o' && mark != 'O' ? 1 : 2);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return false;
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  if (sign && (negative ? value > kLimit : value >= kLimit)) return false;
  out = negative && value != 0 ? "-" + std::to_string(value) : std::to_string(value);
  return true;
}

// ^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$
bool looks_like_float(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t start = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - start;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const size_t whole = digits();
  size_t decimals = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    decimals = digits();
  }
  if (whole == 0 && decimals == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

YamlScalar number_or_string(std::string_view text) {
  std::string plain(text);
  std::erase(plain, '_');
  YamlScalar out;
  if (text[0] != '.' && read_integer(plain, out.text)) {
    out.kind = TreeKind::kNumber;
    return out;
  }
  const double value = looks_like_float(plain) ? std::strtod(plain.c_str(), nullptr) : HUGE_VAL;
  if (std::isfinite(value)) {
    // A zero keeps no sign: "-0.0" would not be an integer to the reader, nor is it one to Go.
    return {TreeKind::kNumber, fmt::format("{}", value == 0 ? 0.0 : value), true};
  }
  return {TreeKind::kString, std::string(text), true};
}

}  // namespace

YamlScalar resolve_yaml_scalar(std::string_view text) {
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) return {TreeKind::kNull, "", true};
  if (one_of(text, {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}))
    return {TreeKind::kBool, "true", true};
  if (one_of(text, {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}))
    return {TreeKind::kBool, "false", true};
  if (one_of(text,
             {".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"}))
    return {TreeKind::kNumber, std::string(text), false};
  const char first = text[0];
  const bool numeric = (first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.';
  return numeric ? number_or_string(text) : YamlScalar{TreeKind::kString, std::string(text), true};
}

}  // namespace berth::api
