// CsvTable: the lines of a CSV file, cut into the columns that its reader asks for.
//
// No quotes and no escapes: the trace files have none, and a quote is a Problem. Lines end in LF, CRLF or CR; empty
// ones are passed over. At most kTraceProblemsMax problems of a file are told one by one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"

namespace berth::scenario {

class CsvTable {
 public:
  // `required` and `optional` are column names. `text` must outlive the table.
  CsvTable(std::string_view text, std::string file, const std::vector<std::string_view>& required,
           const std::vector<std::string_view>& optional, api::Problems& problems);
  // Tells how many problems were not told.
  ~CsvTable();
  CsvTable(const CsvTable&) = delete;
  CsvTable& operator=(const CsvTable&) = delete;

  // Goes to the next line that has as many fields as the first; false at the end.
  bool next();
  // Of the current line, by the column's place in required + optional; empty for an optional one that the file lacks.
  std::string_view field(size_t column) const;
  // A whole number within [0, max]; otherwise a problem of this line.
  std::optional<int64_t> number(size_t column, int64_t max);
  // A problem of the current line, in this column.
  void wrong(size_t column, std::string message);
  // A problem of the current line.
  void wrong(std::string message);

 private:
  std::optional<std::string_view> next_line();
  bool cut(std::string_view line);
  void find_columns();

  std::string_view rest_;
  std::string file_;
  std::vector<std::string_view> names_;  // required, then optional
  size_t required_ = 0;
  api::Problems& problems_;
  std::vector<size_t> places_;  // by column; npos where the file lacks it
  std::vector<std::string_view> fields_;
  size_t width_ = 0;  // fields of the first line; 0 when it was of no use
  int line_ = 0;
  size_t told_ = 0;
};

}  // namespace berth::scenario
