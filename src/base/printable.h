// printable(): text from input, made safe to show.
//
// Names, values and messages come from files, users and other programs. Shown raw, an escape sequence in them could
// repaint a terminal or forge a log line; every error text and report therefore passes through here before it is shown.
// What has been made safe stays as it is, so that a text with such parts may pass whole.
#pragma once

#include <string>
#include <string_view>

namespace berth {

// `text` with every control character (C0, DEL, C1), bidirectional override and invalid UTF-8 byte written as
// \n, \t, \x1b or \u202e; other text, UTF-8 included, unchanged. Longer than `bytes_max` it is cut at a character and
// ends in "...".
std::string printable(std::string_view text, size_t bytes_max = 400);

// Bytes of the UTF-8 sequence that `text`, which is not empty, begins with; 0 if it begins with none.
size_t utf8_length(std::string_view text);

}  // namespace berth
