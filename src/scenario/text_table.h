// TextTable: aligned columns for people. Cells are made safe to show; widths count characters, not bytes.
#pragma once

#include <string>
#include <vector>

namespace berth::scenario {

class TextTable {
 public:
  // A heading that starts with '>' is for a column that is aligned to the right.
  explicit TextTable(std::vector<std::string> headings);
  void add(std::vector<std::string> cells);
  // Header and rows, two spaces between columns, nothing at the end of lines.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> right_;
};

}  // namespace berth::scenario
