// Tree: a parsed document before it becomes JSON text. YAML and JSON parsers build it; api/document.cc writes it out.
//
// Between text and Document only: it exists because YAML needs one (aliases point back, merge keys copy) and because
// both formats share the rules against duplicate keys and depth. TreeBuilder takes the events of either parser. Aliases
// are pointers to nodes, so that the tree is never larger than its text; writing it out is what is bounded.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"

namespace berth::api {

struct TreeNode;

struct TreeMember {
  std::string key;  // empty within lists
  uint32_t line = 0;
  bool merge = false;  // the YAML merge key, "<<"
  const TreeNode* value = nullptr;
};

enum class TreeKind : uint8_t { kNull, kBool, kNumber, kString, kList, kMap };

struct TreeNode {
  TreeKind kind = TreeKind::kNull;
  bool open = false;  // its end has not been read yet: an alias to it now would make it contain itself
  uint32_t line = 0;
  std::string text;                 // of kBool, kNumber (as JSON writes it) and kString
  std::string source;               // of kBool and kNumber as the file has it, where that may differ
  std::vector<TreeMember> members;  // of kList and kMap

  // The member's value; null without it.
  const TreeNode* find(std::string_view key) const;
};

class TreeBuilder {
 public:
  TreeBuilder(std::string file, Problems& problems) : file_(std::move(file)), problems_(problems) {}

  // True where the next event must be a key or the end of the map.
  bool wants_key() const;
  void key(std::string text, uint32_t line, bool merge = false);
  // Reports what stands where a key is wanted, and has it count as one that could not be read.
  void lose_key(uint32_t line, std::string message);
  // Each adds a value at the present place and returns it; null after a problem that ends the document.
  TreeNode* scalar(TreeKind kind, std::string text, uint32_t line);
  TreeNode* scalar(TreeKind kind, std::string text, uint32_t line, std::string_view source);
  TreeNode* open(TreeKind kind, uint32_t line);
  // An alias to `target`, which has been read to its end.
  void alias(const TreeNode& target, uint32_t line) { attach(&target, line); }
  void close();

  const TreeNode* root() const { return root_; }
  size_t value_count() const { return nodes_.size(); }
  // Forgets the present document, ready for the next.
  void reset();
  // Whether keys may hold kBadByte: then two that look alike need not be the same.
  void expect_bad_bytes(bool expected) { bad_bytes_ = expected; }
  bool expects_bad_bytes() const { return bad_bytes_; }
  // Reports a problem at the present place. `read_on`: as in Problem.
  void problem(uint32_t line, std::string message, bool read_on = false);

 private:
  struct Frame {
    TreeNode* node;
    bool has_key = false;  // a key was read, its value was not
  };
  void attach(const TreeNode* value, uint32_t line);
  void check_duplicates(const TreeNode& map);
  // Of the present place; without the last key it is the map's.
  std::string path(bool with_last_key = true) const;

  std::string file_;
  Problems& problems_;
  std::deque<TreeNode> nodes_;
  std::vector<Frame> stack_;
  bool bad_bytes_ = false;
  const TreeNode* root_ = nullptr;
};

// What writing documents may still add, so that aliases cannot make a small file a huge one.
struct WriteBudget {
  size_t values;
  size_t bytes;
};

// Writes `tree` to `out` as JSON text with the line of every value, merge keys applied, `extra` string members put
// first, and takes what it used from `budget`. False after a problem (budget spent, too deep, a bad merge).
bool write_document(const TreeNode& tree, const std::vector<std::pair<std::string, std::string>>& extra, Document& out,
                    WriteBudget& budget, Problems& problems);

}  // namespace berth::api
