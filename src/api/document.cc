#include "api/document.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/bad_bytes.h"
#include "api/json_text.h"
#include "api/names.h"
#include "api/tree.h"
#include "api/yaml_text.h"
#include "base/printable.h"

namespace berth::api {
namespace {

constexpr size_t kBadLinesMax = 20;  // of one chunk are told

struct Chunk {
  std::string_view text;
  uint32_t first_line = 1;
};

bool is_separator(std::string_view line) {
  if (!line.starts_with("---")) return false;
  return line.size() == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r';
}

// The text between "---" lines, each of which begins its chunk. No YAML scalar or JSON string can hold such a line.
std::vector<Chunk> split(std::string_view text) {
  std::vector<Chunk> chunks;
  uint32_t line_number = 1;
  size_t start = 0;
  uint32_t start_line = 1;
  for (size_t at = 0; at < text.size(); ++line_number) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1);
    if (at > start && is_separator(text.substr(at, end - at))) {
      chunks.push_back({text.substr(start, at - start), start_line});
      start = at;
      start_line = line_number;
    }
    at = end + 1;
  }
  chunks.push_back({text.substr(start), start_line});
  return chunks;
}

// How a chunk begins, behind its separator.
struct Start {
  explicit Start(std::string_view text)
      : separator(is_separator(text.substr(0, text.find('\n')))),
        body(separator ? std::min(text.find('\n'), text.size()) : 0),
        first(text.find_first_not_of(" \t\r\n", body)),
        maybe_json(first != std::string_view::npos && (text[first] == '{' || text[first] == '[')) {}
  // The first thing in its first bracket is a quote.
  bool looks_like_json(std::string_view text) const {
    return text.substr(first + 1).find_first_not_of(" \t\r\n") == text.find('"', first) - first - 1;
  }

  bool separator;
  size_t body;
  size_t first;
  bool maybe_json;
};

// Turns trees into Documents: checks apiVersion and kind, expands lists.
class DocumentReader {
 public:
  DocumentReader(const std::string& file, bool plain, Problems& problems)
      : file_(file), plain_(plain), problems_(problems), builder_(file, problems) {}

  void read(Chunk chunk) {
    const std::string_view original = chunk.text;
    const size_t problems_at_first = problems_.size();
    CleanText cleaned = clean(chunk, true);
    if (damaged_) chunk.text = cleaned.text;
    Start start(chunk.text);
    if (start.first == std::string_view::npos && !start.separator) return;
    Problems json_problems;
    if (start.maybe_json && read_as_json(chunk, start.body, json_problems)) return;
    if (original.find('\x7F') != std::string_view::npos) {  // it is no JSON, where this is text
      problems_.resize(problems_at_first);
      chunk.text = original;
      cleaned = clean(chunk, false);
      if (damaged_) chunk.text = cleaned.text;
      start = Start(chunk.text);
    }
    const size_t problems_before = problems_.size();
    const bool read_to_end =
        read_yaml_text(chunk.text, chunk.first_line, builder_, [this](const TreeNode& root) { add(root); });
    if (problems_.size() == problems_before) return;
    if (start.maybe_json && (file_.ends_with(".json") || start.looks_like_json(chunk.text))) {
      problems_.resize(problems_before);
      problems_.insert(problems_.end(), json_problems.begin(), json_problems.end());
    }
    if (read_to_end || !cleaned.concerns(problems_.back().line)) return;
    problems_.pop_back();
    lose_document();
  }

  std::vector<Document> take() { return std::move(documents_); }

 private:
  // A stream of JSON values. False, with nothing kept but `json_problems`, where it is not JSON: it may be YAML in flow
  // style, as Kubernetes tries too.
  bool read_as_json(const Chunk& chunk, size_t at, Problems& json_problems) {
    const size_t documents_before = documents_.size();
    const size_t problems_before = problems_.size();
    uint32_t line = chunk.first_line;
    while (true) {
      builder_.reset();
      switch (read_json_text(chunk.text, at, line, builder_)) {
        case JsonOutcome::kEnd: return true;
        case JsonOutcome::kValue: add(*builder_.root()); break;
        case JsonOutcome::kBroken:
          json_problems.assign(problems_.begin() + static_cast<ptrdiff_t>(problems_before), problems_.end());
          documents_.resize(documents_before);
          problems_.resize(problems_before);
          return false;
      }
    }
  }

  // Tells of the lines with bytes that no text may hold; the chunk with these replaced.
  CleanText clean(const Chunk& chunk, bool delete_is_text) {
    CleanText cleaned = replace_bad_bytes(chunk.text, chunk.first_line, delete_is_text);
    bad_bytes_told_ = problems_.size();
    for (size_t i = 0; i < std::min(cleaned.lines.size(), kBadLinesMax); ++i)
      report_byte(cleaned.lines[i].first, cleaned.lines[i].second);
    bad_bytes_end_ = problems_.size();
    damaged_ = !cleaned.lines.empty();
    builder_.expect_bad_bytes(damaged_);
    return cleaned;
  }

  void report_byte(uint32_t line, unsigned char byte) {
    problem(
        line,
        byte < 0x80
            ? fmt::format(
                  "control characters are not allowed (byte 0x{:02x}); remove it, or write it as an escape in quotes",
                  byte)
            : fmt::format("the text is not UTF-8 (byte 0x{:02x}); save the file as UTF-8", byte));
    problems_.back().read_on = true;
  }

  // Bad bytes hide what a document is: its text counts as not read.
  void lose_document() {
    for (size_t i = bad_bytes_told_; i < bad_bytes_end_; ++i) problems_[i].read_on = false;
  }

  bool unreadable(std::string_view text) const { return damaged_ && text.find(kBadByte) != std::string_view::npos; }

  void problem(uint32_t line, std::string message, std::string path = "") {
    problems_.push_back({file_, static_cast<int>(line), std::move(path), printable(message, 1000)});
  }

  void add(const TreeNode& root) {
    if (root.kind == TreeKind::kNull) return;
    if (root.kind == TreeKind::kString && unreadable(root.text)) return lose_document();
    if (root.kind != TreeKind::kMap)
      return problem(root.line,
                     plain_ ? fmt::format("expected an object, found {}; the top of this file must hold fields, each "
                                          "written 'field: value'",
                                          root.kind == TreeKind::kList ? "a list" : "a single value")
                            : "a document must be an object with apiVersion, kind and metadata");
    budget_.values = builder_.value_count() + kAliasedValuesMax;
    if (plain_) return emit(root, text_of(root, "apiVersion"), text_of(root, "kind"), {});
    add_object(root, "", "", 0);
  }

  static std::string text_of(const TreeNode& map, std::string_view key) {
    const TreeNode* node = map.find(key);
    return node != nullptr && node->kind == TreeKind::kString ? node->text : "";
  }

  // apiVersion or kind: its text, or nothing after a problem.
  bool identity(const TreeNode& map, std::string_view key, const std::string& fallback, std::string& out) {
    const TreeNode* node = map.find(key);
    const bool absent =
        node == nullptr || node->kind == TreeKind::kNull || (node->kind == TreeKind::kString && node->text.empty());
    out = absent ? fallback : node->text;
    const bool may_be_there =
        absent && fallback.empty() &&
        std::any_of(map.members.begin(), map.members.end(), [&](const auto& m) { return unreadable(m.key); });
    if (may_be_there || unreadable(out)) {
      lose_document();
      return false;
    }
    if (absent && fallback.empty()) {
      problem(map.line,
              required_value(key == "kind" ? "say what this object is, for example 'kind: Pod'"
                                           : "say which API it belongs to, for example 'apiVersion: v1'"),
              std::string(key));
      return false;
    }
    if (absent || node->kind == TreeKind::kString) return true;
    problem(node->line, "expected a string; write it in quotes", std::string(key));
    return false;
  }

  void add_object(const TreeNode& object, const std::string& list_version, const std::string& list_kind, int depth) {
    std::string version, kind;
    const bool has_kind = identity(object, "kind", list_kind, kind);
    if (!identity(object, "apiVersion", list_version, version) || !has_kind) return;
    const TreeNode* items = object.find("items");
    if (kind.ends_with("List") && (kind == "List" || items != nullptr))
      return add_items(object, items, version, kind, depth);
    std::vector<std::pair<std::string, std::string>> extra;
    if (object.find("apiVersion") == nullptr) extra.emplace_back("apiVersion", version);
    if (object.find("kind") == nullptr) extra.emplace_back("kind", kind);
    emit(object, version, kind, extra);
  }

  void add_items(const TreeNode& list, const TreeNode* items, const std::string& version, const std::string& kind,
                 int depth) {
    constexpr int kListDepthMax = 4;
    if (items == nullptr || items->kind == TreeKind::kNull) return;
    if (items->kind == TreeKind::kString && unreadable(items->text)) return lose_document();
    if (items->kind != TreeKind::kList)
      return problem(items->line, "expected a list; put '- ' before each item", "items");
    if (depth >= kListDepthMax) return problem(list.line, "lists within lists within lists; write them out flat");
    const bool generic = kind == "List";
    const std::string item_kind = generic ? "" : kind.substr(0, kind.size() - std::string_view("List").size());
    for (size_t i = 0; i < items->members.size(); ++i) {
      const TreeNode& item = *items->members[i].value;
      if (item.kind != TreeKind::kMap)
        problem(items->members[i].line, "expected an object", fmt::format("items[{}]", i));
      else if (++list_items_ > kAliasedValuesMax) return problem(list.line, "more than 1000000 items; split the file");
      else add_object(item, generic ? "" : version, item_kind, depth + 1);
    }
  }

  void emit(const TreeNode& object, std::string version, std::string kind,
            const std::vector<std::pair<std::string, std::string>>& extra) {
    Document document;
    document.api_version = std::move(version);
    document.kind = std::move(kind);
    document.file = file_;
    document.damaged = damaged_ || builder_.expects_bad_bytes();
    if (write_document(object, extra, document, budget_, problems_)) documents_.push_back(std::move(document));
  }

  std::string file_;
  bool plain_;
  Problems& problems_;
  TreeBuilder builder_;
  std::vector<Document> documents_;
  WriteBudget budget_{0, kDocumentBytesMax};
  size_t list_items_ = 0;
  bool damaged_ = false;                           // the chunk
  size_t bad_bytes_told_ = 0, bad_bytes_end_ = 0;  // where `problems_` tells of its bad bytes
};

std::vector<Document> read_all(std::string_view text, const std::string& file, bool plain, Problems& problems) {
  const std::string shown = printable(file);
  if (text.size() > kDocumentBytesMax) {
    problems.push_back({shown, 0, "", "the file is larger than 256 MiB; split it"});
    return {};
  }
  if (is_wide_text(text)) {
    problems.push_back({shown, 0, "", "the file is UTF-16 or UTF-32; save it as UTF-8"});
    return {};
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.empty()) return {};
  DocumentReader reader(shown, plain, problems);
  for (const Chunk& chunk : split(text)) reader.read(chunk);
  return reader.take();
}

}  // namespace

std::string to_string(const Problem& problem) {
  std::string out = printable(problem.file);
  if (problem.line > 0) out += fmt::format("{}{}", out.empty() ? "line " : ":", problem.line);
  if (!out.empty()) out += ": ";
  if (!problem.path.empty()) out += printable(problem.path) + ": ";
  return out + printable(problem.message, 1000);
}

std::vector<Document> read_documents(std::string_view text, const std::string& file, Problems& problems) {
  return read_all(text, file, false, problems);
}

std::vector<Document> read_plain_documents(std::string_view text, const std::string& file, Problems& problems) {
  return read_all(text, file, true, problems);
}

}  // namespace berth::api
