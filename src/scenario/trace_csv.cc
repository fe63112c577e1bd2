#include "scenario/trace_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/printable.h"
#include "scenario/trace.h"

namespace berth::scenario {

CsvTable::CsvTable(std::string_view text, std::string file, const std::vector<std::string_view>& required,
                   const std::vector<std::string_view>& optional, api::Problems& problems)
    : rest_(text), file_(std::move(file)), names_(required), required_(required.size()), problems_(problems) {
  names_.insert(names_.end(), optional.begin(), optional.end());
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  find_columns();
}

CsvTable::~CsvTable() {
  if (told_ > kTraceProblemsMax)
    problems_.push_back({file_, 0, "", fmt::format("{} more problems in this file", told_ - kTraceProblemsMax)});
}

std::optional<std::string_view> CsvTable::next_line() {
  while (!rest_.empty()) {
    const size_t end = rest_.find_first_of("\r\n");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(line.size());
    if (!rest_.empty()) rest_.remove_prefix(rest_.starts_with("\r\n") ? 2 : 1);
    ++line_;
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

bool CsvTable::cut(std::string_view line) {
  fields_.clear();
  if (line.find('"') != std::string_view::npos) {
    wrong("quotes are not understood here; write the values plainly, between commas");
    return false;
  }
  for (;;) {
    const size_t comma = line.find(',');
    fields_.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return true;
    line.remove_prefix(comma + 1);
  }
}

void CsvTable::find_columns() {
  const std::optional<std::string_view> line = next_line();
  if (!line)
    return wrong(fmt::format("the file is empty; its first line names the columns: {}", fmt::join(names_, ",")));
  if (!cut(*line)) return;
  std::vector<std::string_view> missing;
  bool twice = false;
  for (size_t column = 0; column < names_.size(); ++column) {
    const auto at = std::find(fields_.begin(), fields_.end(), names_[column]);
    places_.push_back(at == fields_.end() ? std::string_view::npos : at - fields_.begin());
    if (at == fields_.end() && column < required_) missing.push_back(names_[column]);
    if (at == fields_.end() || std::find(at + 1, fields_.end(), *at) == fields_.end()) continue;
    wrong(fmt::format("the column {} is there twice; keep one", names_[column]));
    twice = true;
  }
  if (!missing.empty())
    wrong(fmt::format("the first line names the columns, and these are missing: {}", fmt::join(missing, ", ")));
  if (missing.empty() && !twice) width_ = fields_.size();
}

bool CsvTable::next() {
  while (width_ > 0) {
    const std::optional<std::string_view> line = next_line();
    if (!line) return false;
    if (!cut(*line)) continue;
    if (fields_.size() == width_) return true;
    wrong(fmt::format("{} fields, and the first line has {}; give each column a value", fields_.size(), width_));
  }
  return false;
}

std::string_view CsvTable::field(size_t column) const {
  return places_[column] == std::string_view::npos ? std::string_view() : fields_[places_[column]];
}

std::optional<int64_t> CsvTable::number(size_t column, int64_t max) {
  const std::string_view text = field(column);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= max) return value;
  wrong(column, fmt::format("'{}' is no whole number from 0 to {}", printable(text, 40), max));
  return std::nullopt;
}

void CsvTable::wrong(size_t column, std::string message) { wrong(fmt::format("{}: {}", names_[column], message)); }

void CsvTable::wrong(std::string message) {
  if (++told_ <= kTraceProblemsMax) problems_.push_back({file_, line_, "", std::move(message)});
}

}  // namespace berth::scenario
