#include "api/bad_bytes.h"

#include <algorithm>

#include "api/document.h"
#include "base/printable.h"

namespace berth::api {
namespace {

// Bytes of the character that `text` begins with; 0 for a bad byte.
size_t good_bytes(std::string_view text, bool delete_is_text) {
  const auto c = static_cast<unsigned char>(text[0]);
  if (c == 0x7F) return delete_is_text ? 1 : 0;
  if (c < 0x20) return c == '\t' || c == '\n' || c == '\r' ? 1 : 0;
  return c < 0x80 ? 1 : utf8_length(text);
}

// The line without its bad bytes where it holds nothing else, else with marks in their place. `bad`: the first one.
std::string replace_in_line(std::string_view line, bool delete_is_text, unsigned char& bad) {
  std::string marked, spaces;
  bool has_text = false, found = false;
  while (!line.empty()) {
    const size_t bytes = good_bytes(line, delete_is_text);
    const std::string_view piece = line.substr(0, std::max<size_t>(bytes, 1));
    if (bytes == 0) {
      if (!found) bad = static_cast<unsigned char>(line[0]);
      found = true;
      marked += kBadByte;
    } else {
      const bool space = piece.find_first_of(" \t\r\n") == 0;
      has_text = has_text || !space;
      if (space) spaces += piece;
      marked += piece;
    }
    line.remove_prefix(piece.size());
  }
  return has_text || !found ? marked : spaces;
}

}  // namespace

bool CleanText::concerns(int line) const {
  return std::any_of(lines.begin(), lines.end(), [&](const auto& bad) {
    const int at = static_cast<int>(bad.first);
    return line == at || line == at + 1;
  });
}

CleanText replace_bad_bytes(std::string_view text, uint32_t first_line, bool delete_is_text) {
  CleanText out;
  std::string built;
  uint32_t line_number = first_line;
  size_t copied = 0;  // of `text`, into `built`
  for (size_t at = 0; at < text.size(); ++line_number) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    size_t good = at;
    while (good < end) {
      const size_t bytes = good_bytes(text.substr(good), delete_is_text);
      if (bytes == 0) break;
      good += bytes;
    }
    if (good < end) {
      unsigned char bad = 0;
      built += text.substr(copied, at - copied);
      built += replace_in_line(text.substr(at, end - at), delete_is_text, bad);
      copied = end;
      out.lines.emplace_back(line_number, bad);
    }
    at = end;
  }
  if (!out.lines.empty()) out.text = built.append(text.substr(copied));
  if (!out.lines.empty() && out.text.empty()) out.text.push_back('\n');
  return out;
}

bool is_wide_text(std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) return true;
  return text.size() >= 4 && ((text[0] == 0 && text[2] == 0) || (text[1] == 0 && text[3] == 0));
}

}  // namespace berth::api
