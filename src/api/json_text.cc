#include "api/json_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace berth::api {
namespace {

void append_utf8(std::string& out, uint32_t rune) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (rune < 0x80) return put(rune);
  if (rune < 0x800) {
    put(0xC0 | (rune >> 6));
  } else if (rune < 0x10000) {
    put(0xE0 | (rune >> 12));
    put(0x80 | ((rune >> 6) & 0x3F));
  } else {
    put(0xF0 | (rune >> 18));
    put(0x80 | ((rune >> 12) & 0x3F));
    put(0x80 | ((rune >> 6) & 0x3F));
  }
  put(0x80 | (rune & 0x3F));
}

class JsonParser {
 public:
  JsonParser(std::string_view text, size_t at, uint32_t line, TreeBuilder& builder)
      : text_(text), at_(at), line_(line), builder_(builder) {}

  size_t at() const { return at_; }
  uint32_t line() const { return line_; }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
      ++at_;
    }
  }
  bool at_end() const { return at_ == text_.size(); }

  bool value() {  // recursion is bounded by TreeBuilder::open
    skip_space();
    const uint32_t line = line_;
    std::string text;
    switch (peek()) {
      case '{': return object(line);
      case '[': return array(line);
      case '"': return string(text) && builder_.scalar(TreeKind::kString, std::move(text), line) != nullptr;
      case 't': return literal("true", TreeKind::kBool);
      case 'f': return literal("false", TreeKind::kBool);
      case 'n': return literal("null", TreeKind::kNull);
      default: return number();
    }
  }

 private:
  char peek() const { return at_end() ? '\0' : text_[at_]; }

  bool broken(std::string_view wanted) {
    const std::string found = at_end() ? "the end of the file" : fmt::format("'{}'", text_[at_]);
    builder_.problem(line_, fmt::format("not valid JSON: expected {}, found {}", wanted, found));
    return false;
  }

  bool object(uint32_t line) {
    if (builder_.open(TreeKind::kMap, line) == nullptr) return false;
    ++at_;
    skip_space();
    if (peek() == '}') return close();
    while (true) {
      skip_space();
      if (peek() != '"') return broken("a field name in double quotes");
      std::string key;
      const uint32_t key_line = line_;
      if (!string(key)) return false;
      builder_.key(std::move(key), key_line);
      skip_space();
      if (peek() != ':') return broken("':' after a field name");
      ++at_;
      if (!value()) return false;
      skip_space();
      if (peek() == '}') return close();
      if (peek() != ',') return broken("',' or '}' after a field");
      ++at_;
    }
  }

  bool array(uint32_t line) {
    if (builder_.open(TreeKind::kList, line) == nullptr) return false;
    ++at_;
    skip_space();
    if (peek() == ']') return close();
    while (true) {
      if (!value()) return false;
      skip_space();
      if (peek() == ']') return close();
      if (peek() != ',') return broken("',' or ']' after an item");
      ++at_;
    }
  }

  bool close() {
    ++at_;
    builder_.close();
    return true;
  }

  bool literal(std::string_view word, TreeKind kind) {
    if (text_.substr(at_, word.size()) != word) return broken("a value");
    at_ += word.size();
    return builder_.scalar(kind, kind == TreeKind::kNull ? "" : std::string(word), line_) != nullptr;
  }

  void digits() {
    while (peek() >= '0' && peek() <= '9') ++at_;
  }

  bool number() {
    const size_t start = at_;
    if (peek() == '-') ++at_;
    const size_t first = at_;
    digits();
    if (at_ == first) return broken("a value");
    if (text_[first] == '0' && at_ - first > 1) return broken("a number without leading zeros");
    bool integer = true;
    if (peek() == '.') {
      integer = false;
      ++at_;
      const size_t decimals = at_;
      digits();
      if (at_ == decimals) return broken("a digit after the decimal point");
    }
    if (peek() == 'e' || peek() == 'E') {
      integer = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      const size_t exponent = at_;
      digits();
      if (at_ == exponent) return broken("a digit in the exponent");
    }
    return add_number(std::string(text_.substr(start, at_ - start)), integer);
  }

  bool add_number(std::string text, bool integer) {
    std::string source;
    uint64_t value = 0;
    const char* start = text.data() + (text[0] == '-' ? 1 : 0);
    const bool fits = std::from_chars(start, text.data() + text.size(), value).ec == std::errc{} &&
                      (text[0] != '-' || value <= uint64_t{1} << 63);
    if (!integer || !fits) {
      const double wide = std::strtod(text.c_str(), nullptr);
      if (!std::isfinite(wide)) {
        builder_.problem(line_, fmt::format("the number {} is out of range", text));
        return false;
      }
      source = text;
      if (integer) text = fmt::format("{:e}", wide);
    }
    return builder_.scalar(TreeKind::kNumber, std::move(text), line_, source) != nullptr;
  }

  bool hex4(uint32_t& out) {
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
    if (error != std::errc{} || digits.size() < 4 || end != digits.data() + 4)
      return broken("four hexadecimal digits after \\u");
    at_ += 4;
    return true;
  }

  bool escape(std::string& out) {
    const char c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/': out += c; return true;
      case 'b': out += '\b'; return true;
      case 'f': out += '\f'; return true;
      case 'n': out += '\n'; return true;
      case 'r': out += '\r'; return true;
      case 't': out += '\t'; return true;
      case 'u': break;
      default: --at_; return broken("an escape such as \\n or \\u0041");
    }
    uint32_t rune = 0;
    if (!hex4(rune)) return false;
    constexpr uint32_t kReplacement = 0xFFFD;  // as encoding/json does for a lone surrogate
    if (rune >= 0xD800 && rune < 0xDC00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      uint32_t low = 0;
      if (!hex4(low)) return false;
      if (low >= 0xDC00 && low < 0xE000) rune = 0x10000 + ((rune - 0xD800) << 10) + (low - 0xDC00);
      else at_ -= 6, rune = kReplacement;
    } else if (rune >= 0xD800 && rune < 0xE000) {
      rune = kReplacement;
    }
    append_utf8(out, rune);
    return true;
  }

  bool string(std::string& out) {
    ++at_;
    while (!at_end()) {
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) return broken("'\"' before the end of the line");
      ++at_;
      if (c == '"') return true;
      if (c != '\\') out += c;
      else if (!escape(out)) return false;
    }
    return broken("'\"'");
  }

  std::string_view text_;
  size_t at_;
  uint32_t line_;
  TreeBuilder& builder_;
};

}  // namespace

JsonOutcome read_json_text(std::string_view text, size_t& at, uint32_t& line, TreeBuilder& builder) {
  JsonParser parser(text, at, line, builder);
  parser.skip_space();
  if (parser.at_end()) return JsonOutcome::kEnd;
  const bool ok = parser.value();
  at = parser.at();
  line = parser.line();
  return ok ? JsonOutcome::kValue : JsonOutcome::kBroken;
}

}  // namespace berth::api
