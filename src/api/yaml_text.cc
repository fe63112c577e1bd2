#include "api/yaml_text.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <vector>

namespace berth::api {
namespace {

constexpr const char* kQuoteOpen = "not valid YAML: the quote that opens here is never closed";
constexpr const char* kTemplate = "this looks like a template; render it first, for example by 'helm template'";
constexpr const char* kNoKey = "a key must not be missing or null; keys are words, or texts in quotes";
constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

// Thrown out of the handler after it has reported a problem that ends the document.
struct StopParsing {};

// Where the bracket or quote opens that is never closed, of those from `start` on, where one opens; none if that is
// closed.
std::optional<size_t> find_unclosed(std::string_view text, size_t start) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<size_t> open;
  char quote = '\0', before = ' ';
  size_t quoted = start;
  for (size_t at = start; at < text.size(); before = text[at++]) {
    const char c = text[at];
    const bool after_space = kSpace.find(before) != std::string_view::npos;
    const bool begins = after_space || std::string_view("{[,:").find(before) != std::string_view::npos;
    if (quote == '"' && c == '\\') ++at;
    else if (quote != '\0') quote = c == quote ? '\0' : quote;
    else if (begins && (c == '"' || c == '\'')) quote = c, quoted = at;
    else if (after_space && c == '#') at = std::min(text.find('\n', at), text.size() - 1);
    else if (c == '{' || c == '[') open.push_back(at);
    else if (c == '}' || c == ']') {
      if (open.empty() || text[open.back()] != (c == '}' ? '{' : '[')) break;
      open.pop_back();
    }
    if (open.empty() && quote == '\0') return std::nullopt;
  }
  if (quote != '\0') return quoted;
  return open.empty() ? std::nullopt : std::optional(open.back());
}

class TreeHandler : public YAML::EventHandler {
 public:
  TreeHandler(std::string_view text, uint32_t first_line, TreeBuilder& builder)
      : text_(text), first_line_(first_line), builder_(builder) {}

  // yaml-cpp takes whatever follows a document for another one, and never gets past a stray ',' or ']'.
  void OnDocumentStart(const YAML::Mark& mark) override {
    const auto at = std::min(text_.size(), static_cast<size_t>(std::max(0, mark.pos)));
    const bool ended =
        text_.substr(last_start_, at - std::min(at, last_start_)).find("\n...") != std::string_view::npos;
    builder_.reset();
    if (started_ && (!ended || at <= last_start_))
      stop(mark,
           "not valid YAML: something follows the end of the document; check the brackets, or separate documents by a "
           "line '---'");
    started_ = true;
    last_start_ = at;
    anchors_.clear();
    brackets_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (skips(anchor)) return;
    if (builder_.wants_key()) return builder_.lose_key(line(mark), kNoKey);
    add({TreeKind::kNull, "", true}, mark, anchor, "");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (tag == "!") check_closed(mark);
    if (skips(anchor)) return;
    YamlScalar scalar = resolve(mark, tag, text);
    if (!builder_.wants_key()) return add(std::move(scalar), mark, anchor, text);
    if (scalar.kind == TreeKind::kNull) return builder_.lose_key(line(mark), kNoKey);
    const bool merge = text == "<<" && tag != "!";
    const bool mistaken = scalar.kind == TreeKind::kBool && scalar.text != text;
    builder_.key(mistaken ? text : scalar.text, line(mark), merge);
    if (mistaken)
      builder_.problem(line(mark),
                       fmt::format("YAML reads the key {} as the boolean {}; put it in quotes", text, scalar.text),
                       true);
    if (anchor == 0) return;
    lose(mark, "anchors on keys are not supported; put the anchor on a value");
    remember(anchor, nullptr);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (skip_depth_ > 0) return;
    if (builder_.wants_key()) return builder_.lose_key(line(mark), "an alias cannot be a key; write the key out");
    const auto target = anchors_.find(anchor);
    if (target == anchors_.end()) lose(mark, "unknown anchor; define it with '&name' before '*name'");
    else if (target->second == nullptr) {
    }  // what it names was told of
    else if (!target->second->open)
      return builder_.alias(*target->second, line(mark));
    else lose(mark, "an anchor's value contains an alias to itself; remove the alias");
    add(lost(), mark, 0, "");
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(TreeKind::kList, "seq", mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(TreeKind::kMap, "map", mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  // Tells of the bracket in which yaml-cpp gave up, if it is one that is never closed.
  bool tell_unclosed() { return !brackets_.empty() && tell_unclosed(brackets_.front()); }

 private:
  uint32_t line(const YAML::Mark& mark) const { return first_line_ + static_cast<uint32_t>(std::max(0, mark.line)); }

  [[noreturn]] void stop(const YAML::Mark& mark, std::string message) {
    builder_.problem(line(mark), std::move(message));
    throw StopParsing{};
  }

  // What stands for a value that could not be read: nothing further is said of it (Document::damaged).
  YamlScalar lost() {
    builder_.expect_bad_bytes(true);
    return {TreeKind::kString, std::string(kBadByte), true};
  }

  // Reports what only the present value suffers from.
  void lose(const YAML::Mark& mark, std::string message) { builder_.problem(line(mark), std::move(message), true); }

  // True within a map or list that stands where a key is wanted.
  bool skips(YAML::anchor_t anchor) {
    if (skip_depth_ > 0) remember(anchor, nullptr);
    return skip_depth_ > 0;
  }

  // `node`: null where it was not kept.
  void remember(YAML::anchor_t anchor, const TreeNode* node) {
    if (anchor != 0) anchors_[anchor] = node;
  }

  void add(YamlScalar scalar, const YAML::Mark& mark, YAML::anchor_t anchor, std::string_view source) {
    if (!scalar.finite) {
      lose(mark, fmt::format("{} is not a number that JSON has; put it in quotes or write another", scalar.text));
      scalar = lost();
    }
    const bool rewritten =
        (scalar.kind == TreeKind::kNumber || scalar.kind == TreeKind::kBool) && source != scalar.text;
    remember(anchor, builder_.scalar(scalar.kind, std::move(scalar.text), line(mark), rewritten ? source : ""));
  }

  void open(TreeKind kind, std::string_view name, const YAML::Mark& mark, std::string_view tag, YAML::anchor_t anchor) {
    const auto at = static_cast<size_t>(std::max(0, mark.pos));
    const bool bracket = at < text_.size() && (text_[at] == '{' || text_[at] == '[');
    if (bracket || !brackets_.empty()) brackets_.push_back(mark);
    if (skips(anchor) || builder_.wants_key()) {
      if (skip_depth_++ > 0) return;
      remember(anchor, nullptr);
      check_bracket_closed(mark);
      return builder_.lose_key(line(mark), is_template(mark)
                                               ? kTemplate
                                               : "a map or list cannot be a key; keys are words, or texts in quotes");
    }
    const bool plain = tag.empty() || tag == "?" || tag == "!";
    if (!plain && tag != std::string(kTagPrefix) + std::string(name))
      lose(mark, fmt::format("the tag '{}' is not supported; remove it", tag));
    const TreeNode* node = builder_.open(kind, line(mark));
    if (node == nullptr) throw StopParsing{};
    remember(anchor, node);
  }

  void close() {
    if (!brackets_.empty()) brackets_.pop_back();
    if (skip_depth_ == 0) builder_.close();
    else --skip_depth_;
  }

  // "{{ .Values.nodes }}" reads as a map whose key is a map.
  bool is_template(const YAML::Mark& mark) const {
    const auto at = static_cast<size_t>(std::max(0, mark.pos));
    return at > 0 && at < text_.size() && text_.substr(at - 1, 2) == "{{";
  }

  YamlScalar resolve(const YAML::Mark& mark, std::string_view tag, const std::string& text) {
    if (tag == "!") return {TreeKind::kString, text, true};
    YamlScalar scalar = resolve_yaml_scalar(text);
    if (tag == "?" || tag.empty()) return scalar;
    const std::string_view name = tag.starts_with(kTagPrefix) ? tag.substr(kTagPrefix.size()) : "";
    if (name == "str") return {TreeKind::kString, text, true};
    const bool number = scalar.kind == TreeKind::kNumber;
    const bool whole = number && scalar.text.find_first_of(".en") == std::string::npos;
    const bool fits = (name == "int" && whole) || (name == "float" && number) ||
                      (name == "bool" && scalar.kind == TreeKind::kBool) ||
                      (name == "null" && scalar.kind == TreeKind::kNull);
    if (fits) return scalar;
    lose(mark, fmt::format("cannot read '{}' with the tag '{}'; remove the tag", text, tag));
    return lost();
  }

  // yaml-cpp lets a quoted text that is never closed run to the end of the file.
  void check_closed(const YAML::Mark& mark) {
    const auto at = static_cast<size_t>(std::max(0, mark.pos));
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return;
    const char quote = text_[at];
    for (size_t i = at + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') ++i;
      else if (text_[i] == quote && quote == '\'' && i + 1 < text_.size() && text_[i + 1] == quote) ++i;
      else if (text_[i] == quote) return;
    }
    stop(mark, kQuoteOpen);
  }

  // yaml-cpp takes a bracket that is never closed for the key of a map.
  void check_bracket_closed(const YAML::Mark& mark) {
    if (tell_unclosed(mark)) throw StopParsing{};
  }

  // Tells of the first bracket or quote from this place on that is never closed; false if there is none.
  bool tell_unclosed(const YAML::Mark& mark) {
    const auto start = std::min(text_.size(), static_cast<size_t>(std::max(0, mark.pos)));
    const std::optional<size_t> at = find_unclosed(text_, start);
    if (!at) return false;
    const auto lines =
        std::count(text_.begin() + static_cast<ptrdiff_t>(start), text_.begin() + static_cast<ptrdiff_t>(*at), '\n');
    const char opening = text_[*at];
    builder_.problem(line(mark) + static_cast<uint32_t>(lines),
                     opening == '"' || opening == '\''
                         ? kQuoteOpen
                         : fmt::format("not valid YAML: the '{}' that opens here is never closed", opening));
    return true;
  }

  std::string_view text_;
  size_t last_start_ = 0;
  std::vector<YAML::Mark> brackets_;  // the outermost that is open, and what is open in it
  int skip_depth_ = 0;                // of the maps and lists that stand where a key is wanted
  bool started_ = false;
  uint32_t first_line_;
  TreeBuilder& builder_;
  std::unordered_map<YAML::anchor_t, const TreeNode*> anchors_;
};

std::string_view line_of(std::string_view text, int index) {
  for (; index > 0; --index) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// The first line up to this one, counted from 0, that begins with the "{{" of a template's action.
std::optional<int> template_line(std::string_view text, int last) {
  for (int index = 0; index <= last; ++index) {
    const size_t end = text.find('\n');
    const size_t indent = std::min(text.find_first_not_of(" \t"), text.size());
    if (text.substr(indent).starts_with("{{")) return index;
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

// yaml-cpp's words, and the usual cause where the line shows one.
std::string explain(const YAML::Exception& error, std::string_view text) {
  const std::string_view line = error.mark.is_null() ? "" : line_of(text, error.mark.line);
  const size_t indent = line.find_first_not_of(' ');
  std::string hint;
  if (indent != std::string_view::npos && line[indent] == '\t') hint = "; indent with spaces, not tabs";
  else if (error.msg == "illegal map value") hint = "; put a text that holds ': ' in quotes, and check the indentation";
  else if (error.msg.find("end of map flow") != std::string::npos) hint = "; a ',' is missing between its members";
  else if (error.msg.find("end of sequence flow") != std::string::npos) hint = "; a ',' is missing between its items";
  else if (error.msg.find("end of map") != std::string::npos) hint = "; check the indentation and the quotes above";
  return fmt::format("not valid YAML: {}{}", error.msg, hint);
}

}  // namespace

bool read_yaml_text(std::string_view text, uint32_t first_line, TreeBuilder& builder,
                    const std::function<void(const TreeNode& root)>& on_document) {
  builder.reset();
  TreeHandler handler(text, first_line, builder);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler))
      if (builder.root() != nullptr) on_document(*builder.root());
    return true;
  } catch (const StopParsing&) { return false; } catch (const YAML::Exception& error) {
    const int at = error.mark.is_null() ? 0 : std::max(0, error.mark.line);
    if (const std::optional<int> action = template_line(text, at))
      builder.problem(first_line + static_cast<uint32_t>(*action), kTemplate);
    else if (!handler.tell_unclosed()) builder.problem(first_line + static_cast<uint32_t>(at), explain(error, text));
    return false;
  } catch (const std::exception& error) {
    builder.problem(first_line, fmt::format("not valid YAML: {}", error.what()));
    return false;
  }
}

}  // namespace berth::api
