#include "base/base64.h"

#include <cstdint>

namespace berth {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i) out += i <= count ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

Result<std::string> base64_decode(std::string_view text) {
  std::string out;
  uint32_t group = 0;
  size_t digits = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
    const size_t value = c == '=' ? 0 : kAlphabet.find(c);
    if (value == std::string_view::npos || (c != '=' && padding > 0))
      return fail(ErrorCode::kInvalidInput, "not base64; encode the PEM text with 'base64 -w0'");
    padding += c == '=';
    group = group << 6 | static_cast<uint32_t>(value);
    if (++digits % 4 != 0) continue;
    for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(group >> shift & 255);
    group = 0;
  }
  if (digits % 4 != 0 || padding > 2)
    return fail(ErrorCode::kInvalidInput, "base64 text that has been cut off; encode it again");
  out.resize(out.size() - padding);
  return out;
}

}  // namespace berth
