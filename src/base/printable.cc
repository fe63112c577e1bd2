#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace berth {
namespace {

struct Rune {
  uint32_t value = 0;
  size_t bytes = 0;  // 0: not UTF-8 here
};

// The UTF-8 sequence at the start of `text`; overlong forms, surrogates and values above U+10FFFF are none.
Rune decode_rune(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {};
  uint32_t value = first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, bytes};
}

// Controls, line and paragraph separators, and what reorders or hides the text around it.
bool is_hidden(uint32_t rune) {
  return rune < 0x20 || (rune >= 0x7F && rune < 0xA0) || (rune >= 0x200B && rune <= 0x200F) ||
         (rune >= 0x2028 && rune <= 0x202E) || (rune >= 0x2066 && rune <= 0x2069) || rune == 0xFEFF;
}

std::string escape(uint32_t rune) {
  switch (rune) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: return rune < 0x100 ? fmt::format("\\x{:02x}", rune) : fmt::format("\\u{:04x}", rune);
  }
}

}  // namespace

size_t utf8_length(std::string_view text) { return decode_rune(text).bytes; }

std::string printable(std::string_view text, size_t bytes_max) {
  std::string out;
  out.reserve(std::min(text.size(), bytes_max));
  while (!text.empty()) {
    const Rune rune = decode_rune(text);
    const size_t bytes = rune.bytes == 0 ? 1 : rune.bytes;
    const std::string piece = rune.bytes == 0         ? fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]))
                              : is_hidden(rune.value) ? escape(rune.value)
                                                      : std::string(text.substr(0, bytes));
    if (out.size() + piece.size() > bytes_max) return out + "...";
    out += piece;
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace berth
