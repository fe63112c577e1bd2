#include "api/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "api/names.h"
#include "base/printable.h"

namespace berth::api {
namespace {

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else out += c;
  }
  out += '"';
}

// Writes a tree as JSON within a budget, which only aliases and merge keys can exceed.
class TreeWriter {
 public:
  TreeWriter(Document& out, const WriteBudget& budget, Problems& problems)
      : out_(out), budget_(budget), problems_(problems) {}

  bool write(const TreeNode& node, uint32_t line, int depth) {
    if (depth > kDocumentDepthMax)
      return fail_at(
          line, fmt::format("nested deeper than {} levels through aliases; write it out flatter", kDocumentDepthMax));
    if (out_.lines.size() >= budget_.values || out_.json.size() + node.text.size() > budget_.bytes)
      return fail_at(line,
                     fmt::format("aliases expand to more than {} values or 256 MiB; write the document without them",
                                 kAliasedValuesMax));
    if (!node.source.empty()) out_.sources.emplace_back(out_.lines.size(), node.source);
    out_.lines.push_back(line);
    switch (node.kind) {
      case TreeKind::kNull: out_.json += "null"; return true;
      case TreeKind::kBool:
      case TreeKind::kNumber: out_.json += node.text; return true;
      case TreeKind::kString: append_json_string(out_.json, node.text); return true;
      case TreeKind::kList: return write_list(node, depth);
      case TreeKind::kMap: return write_map(node, {}, depth);
    }
    return true;
  }

  bool write_map(const TreeNode& map, const std::vector<std::pair<std::string, std::string>>& extra, int depth) {
    std::vector<const TreeMember*> members;
    if (!collect(map, members, depth)) return false;
    out_.json += '{';
    const char* comma = "";
    for (const auto& [key, value] : extra) {
      out_.json += comma;
      append_json_string(out_.json, key);
      out_.json += ':';
      append_json_string(out_.json, value);
      out_.lines.push_back(map.line);
      comma = ",";
    }
    for (const TreeMember* member : members) {
      out_.json += comma;
      append_json_string(out_.json, member->key);
      out_.json += ':';
      if (!write(*member->value, member->line, depth + 1)) return false;
      comma = ",";
    }
    out_.json += '}';
    return true;
  }

 private:
  bool fail_at(uint32_t line, std::string message) {
    problems_.push_back({out_.file, static_cast<int>(line), "", printable(message, 1000)});
    return false;
  }

  void report(uint32_t line, std::string_view message) {
    problems_.push_back({out_.file, static_cast<int>(line), "", printable(message, 1000), true});
  }

  // Stands for those that a merge key should have brought.
  const TreeMember& lost_member() {
    static const TreeNode nothing;
    static const TreeMember lost{std::string(kBadByte), 0, false, &nothing};
    out_.damaged = true;
    return lost;
  }

  bool write_list(const TreeNode& list, int depth) {
    out_.json += '[';
    const char* comma = "";
    for (const TreeMember& item : list.members) {
      out_.json += comma;
      if (!write(*item.value, item.line, depth + 1)) return false;
      comma = ",";
    }
    out_.json += ']';
    return true;
  }

  // The map's members with its merge keys applied: its own win, then earlier sources.
  bool collect(const TreeNode& map, std::vector<const TreeMember*>& out, int depth) {
    const bool merges = std::any_of(map.members.begin(), map.members.end(), [](const auto& m) { return m.merge; });
    if (!merges) {
      for (const TreeMember& member : map.members) out.push_back(&member);
      return true;
    }
    if (depth > kDocumentDepthMax) return fail_at(map.line, "merge keys nested too deep");
    std::vector<const TreeMember*> merged;
    std::unordered_map<std::string_view, size_t> own;  // key to its place in the map
    for (size_t i = 0; i < map.members.size(); ++i)
      if (!map.members[i].merge) own.emplace(map.members[i].key, i);
    for (size_t i = 0; i < map.members.size(); ++i) {
      const TreeMember& member = map.members[i];
      if (!member.merge) {
        out.push_back(&member);
        continue;
      }
      std::vector<const TreeMember*> source;
      if (!collect_source(member, source, depth)) return false;
      for (const TreeMember* candidate : source) {
        const auto [at, fresh] = own.emplace(candidate->key, map.members.size());
        if (!fresh && at->second < i)
          report(member.line, fmt::format("'{}' is set before the merge key '<<', which sets it again and would "
                                          "win; move '<<' to the top of its map",
                                          candidate->key));
        if (fresh) merged.push_back(candidate);
      }
    }
    out.insert(out.end(), merged.begin(), merged.end());
    return true;
  }

  bool collect_source(const TreeMember& member, std::vector<const TreeMember*>& out, int depth) {
    std::vector<const TreeNode*> maps;
    if (member.value->kind == TreeKind::kMap) maps.push_back(member.value);
    else if (member.value->kind == TreeKind::kList)
      for (const TreeMember& item : member.value->members) maps.push_back(item.value);
    else maps.push_back(member.value);
    for (const TreeNode* map : maps) {
      if (map->kind != TreeKind::kMap) {
        report(member.line, "map merge requires map or sequence of maps as the value, such as '<<: *name'");
        out.push_back(&lost_member());
        continue;
      }
      merged_values_ += map->members.size();
      if (merged_values_ > kAliasedValuesMax)
        return fail_at(member.line,
                       fmt::format("merge keys expand to more than {} values; write the document without them",
                                   kAliasedValuesMax));
      if (!collect(*map, out, depth + 1)) return false;
    }
    return true;
  }

  Document& out_;
  const WriteBudget& budget_;
  Problems& problems_;
  size_t merged_values_ = 0;
};

}  // namespace

const TreeNode* TreeNode::find(std::string_view key) const {
  for (const TreeMember& member : members)
    if (member.key == key && !member.merge) return member.value;
  return nullptr;
}

bool TreeBuilder::wants_key() const {
  return !stack_.empty() && stack_.back().node->kind == TreeKind::kMap && !stack_.back().has_key;
}

void TreeBuilder::key(std::string text, uint32_t line, bool merge) {
  stack_.back().node->members.push_back({std::move(text), line, merge, nullptr});
  stack_.back().has_key = true;
}

void TreeBuilder::attach(const TreeNode* value, uint32_t line) {
  if (stack_.empty()) {
    root_ = value;
    return;
  }
  Frame& frame = stack_.back();
  if (frame.node->kind == TreeKind::kList) {
    frame.node->members.push_back({"", line, false, value});
    return;
  }
  frame.node->members.back().value = value;
  frame.has_key = false;
}

TreeNode* TreeBuilder::scalar(TreeKind kind, std::string text, uint32_t line) {
  TreeNode& node = nodes_.emplace_back();
  node.kind = kind;
  node.line = line;
  node.text = std::move(text);
  attach(&node, line);
  return &node;
}

TreeNode* TreeBuilder::scalar(TreeKind kind, std::string text, uint32_t line, std::string_view source) {
  constexpr size_t kSourceBytesMax = 80;  // aliases copy it, and nobody reads more in a message
  TreeNode* node = scalar(kind, std::move(text), line);
  if (source.size() <= kSourceBytesMax) node->source = source;
  return node;
}

TreeNode* TreeBuilder::open(TreeKind kind, uint32_t line) {
  if (stack_.size() >= static_cast<size_t>(kDocumentDepthMax)) {
    problem(line, fmt::format("nested deeper than {} levels; write it flatter", kDocumentDepthMax));
    return nullptr;
  }
  TreeNode* node = scalar(kind, "", line);
  node->open = true;
  stack_.push_back({node});
  return node;
}

void TreeBuilder::close() {
  TreeNode& node = *stack_.back().node;
  node.open = false;
  if (node.kind == TreeKind::kMap) check_duplicates(node);
  stack_.pop_back();
}

void TreeBuilder::check_duplicates(const TreeNode& map) {
  std::vector<const TreeMember*> sorted;
  sorted.reserve(map.members.size());
  for (const TreeMember& member : map.members) sorted.push_back(&member);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->key < b->key; });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i]->key == sorted[i - 1]->key && (!bad_bytes_ || sorted[i]->key.find(kBadByte) == std::string::npos))
      problems_.push_back(
          {file_, static_cast<int>(sorted[i]->line), printable(append_key(path(false), sorted[i]->key)),
           fmt::format("given twice in the same map, first on line {}; remove one of them", sorted[i - 1]->line),
           true});
}

std::string TreeBuilder::path(bool with_last_key) const {
  std::string out;
  for (const Frame& frame : stack_) {
    const auto& members = frame.node->members;
    const bool last = &frame == &stack_.back();
    const bool has_key = !members.empty() && (!last || with_last_key);
    if (frame.node->kind == TreeKind::kMap && has_key) out = append_key(std::move(out), members.back().key);
    if (frame.node->kind == TreeKind::kList) out += fmt::format("[{}]", last ? members.size() : members.size() - 1);
  }
  return out;
}

void TreeBuilder::reset() {
  nodes_.clear();
  stack_.clear();
  root_ = nullptr;
}

void TreeBuilder::problem(uint32_t line, std::string message, bool read_on) {
  problems_.push_back({file_, static_cast<int>(line), printable(path()), printable(message, 1000), read_on});
}

void TreeBuilder::lose_key(uint32_t line, std::string message) {
  problems_.push_back({file_, static_cast<int>(line), printable(path(false)), printable(message, 1000), true});
  bad_bytes_ = true;
  key(std::string(kBadByte), line);
}

bool write_document(const TreeNode& tree, const std::vector<std::pair<std::string, std::string>>& extra, Document& out,
                    WriteBudget& budget, Problems& problems) {
  TreeWriter writer(out, budget, problems);
  const bool plain = extra.empty() || tree.kind != TreeKind::kMap;
  if (!plain) out.lines.push_back(tree.line);
  const bool ok = plain ? writer.write(tree, tree.line, 1) : writer.write_map(tree, extra, 1);
  budget.values -= std::min(budget.values, out.lines.size());
  budget.bytes -= std::min(budget.bytes, out.json.size());
  return ok;
}

}  // namespace berth::api
