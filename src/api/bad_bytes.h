// Bytes that no text may hold: control characters, and what is not UTF-8. See api/document.h for what becomes of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::api {

struct CleanText {
  std::string text;                                       // with each bad byte as kBadByte; empty where none is bad
  std::vector<std::pair<uint32_t, unsigned char>> lines;  // those with a bad byte, and its first one
  // True if what is wrong in this line may come from a bad byte in it, or from a text that one left open before it.
  bool concerns(int line) const;
};

// A line of bad bytes and spaces alone (a page break, the end mark of a DOS file) becomes an empty one. The byte 0x7F
// is text in JSON, and none in YAML.
CleanText replace_bad_bytes(std::string_view text, uint32_t first_line, bool delete_is_text);

// True for UTF-16 and UTF-32 by their marks, or by zeros where such a text has them.
bool is_wide_text(std::string_view text);

}  // namespace berth::api
