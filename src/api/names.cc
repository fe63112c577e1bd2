#include "api/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/printable.h"

namespace berth::api {
namespace {

constexpr size_t kLabelBytesMax = 63;
constexpr size_t kSubdomainBytesMax = 253;
constexpr std::string_view kLabelMessage =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kSubdomainMessage =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kNameMessage =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kLabelValueMessage =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alphanumeric(char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z'); }

bool is_label(std::string_view value) {
  return !value.empty() && is_lower_or_digit(value.front()) && is_lower_or_digit(value.back()) &&
         std::all_of(value.begin(), value.end(), [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

bool is_name(std::string_view value) {
  return !value.empty() && is_alphanumeric(value.front()) && is_alphanumeric(value.back()) &&
         std::all_of(value.begin(), value.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

std::string too_long(size_t bytes_max) { return fmt::format("must be no more than {} bytes", bytes_max); }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// How many letters to replace, insert, leave out or swap with the next one, case folded (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  const auto same = [&](size_t i, size_t j) { return lower(a[i - 1]) == lower(b[j - 1]); };
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (same(i, j) ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j)) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string check_dns1123_label(std::string_view value) {
  if (value.size() > kLabelBytesMax) return too_long(kLabelBytesMax);
  return is_label(value) ? "" : std::string(kLabelMessage);
}

std::string check_dns1123_subdomain(std::string_view value) {
  if (value.size() > kSubdomainBytesMax) return too_long(kSubdomainBytesMax);
  while (true) {
    const size_t dot = value.find('.');
    if (!is_label(value.substr(0, dot))) return std::string(kSubdomainMessage);
    if (dot == std::string_view::npos) return "";
    value.remove_prefix(dot + 1);
  }
}

std::string check_path_segment(std::string_view value) {
  if (value == "." || value == "..") return fmt::format("may not be '{}'", value);
  for (const char c : {'/', '%'})
    if (value.find(c) != std::string_view::npos) return fmt::format("may not contain '{}'", c);
  return "";
}

std::string check_qualified_name(std::string_view value) {
  const size_t slash = value.find('/');
  std::string_view name = value;
  if (slash != std::string_view::npos) {
    const std::string_view prefix = value.substr(0, slash);
    name = value.substr(slash + 1);
    if (prefix.empty()) return "prefix part must be non-empty";
    if (name.find('/') != std::string_view::npos)
      return "a qualified name must have at most one '/' between an optional DNS subdomain prefix and the name "
             "(e.g. 'example.com/MyName')";
    if (std::string why = check_dns1123_subdomain(prefix); !why.empty()) return "prefix part " + why;
  }
  if (name.empty()) return "name part must be non-empty";
  if (name.size() > kLabelBytesMax) return "name part " + too_long(kLabelBytesMax);
  return is_name(name) ? "" : "name part " + std::string(kNameMessage);
}

std::string check_label_value(std::string_view value) {
  if (value.size() > kLabelBytesMax) return too_long(kLabelBytesMax);
  return value.empty() || is_name(value) ? "" : std::string(kLabelValueMessage);
}

std::string invalid_value(std::string_view value, std::string_view why) {
  return fmt::format("Invalid value: \"{}\": {}", printable(value, 80), why);
}

std::string required_value(std::string_view why) {
  return why.empty() ? "Required value" : fmt::format("Required value: {}", why);
}

std::string unsupported_value(std::string_view value, std::vector<std::string_view> supported) {
  std::sort(supported.begin(), supported.end());
  return fmt::format("Unsupported value: \"{}\": supported values: \"{}\"", printable(value, 80),
                     fmt::join(supported, "\", \""));
}

std::string duplicate_value(std::string_view value) {
  return fmt::format("Duplicate value: \"{}\"; remove one of them", printable(value, 80));
}

std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr size_t kWordBytesMax = 80;
  if (word.size() > kWordBytesMax) return {};
  std::string_view best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const bool begins = candidate.starts_with(word) && word.size() * 2 >= candidate.size();
    const size_t distance =
        begins ? std::min<size_t>(1, candidate.size() - word.size()) : edit_distance(word, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string append_key(std::string path, std::string_view key) {
  const bool plain =
      !key.empty() && std::all_of(key.begin(), key.end(), [](char c) { return is_alphanumeric(c) || c == '_'; });
  if (!plain) return path + "[" + std::string(key) + "]";
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

}  // namespace berth::api
