// What Reader says of its place, and of what is wrong there.
#include <fmt/format.h>

#include <algorithm>

#include "api/misplaced.h"
#include "api/names.h"
#include "api/reader.h"
#include "api/reader_raw.h"
#include "base/printable.h"

namespace berth::api {
namespace {

namespace dom = simdjson::dom;

// How many values a subtree has, itself included: the step between siblings in Document::lines.
size_t count_values(const dom::element& element) {
  size_t count = 1;
  if (element.is_array()) {
    for (const dom::element item : dom::array(element)) count += count_values(item);
  } else if (element.is_object()) {
    for (const dom::key_value_pair member : dom::object(element)) count += count_values(member.value);
  }
  return count;
}

}  // namespace

std::string Reader::path() const {
  if (parent_ == nullptr) return "";
  std::string out = parent_->path();
  if (in_array_) return out + fmt::format("[{}]", index_);
  return append_key(std::move(out), key_);
}

std::string Reader::source() const {
  if (const Document* document = sink_->document; document != nullptr && !document->sources.empty()) {
    const size_t place = position();
    const auto& sources = document->sources;
    const auto at = std::lower_bound(sources.begin(), sources.end(), place,
                                     [](const auto& entry, size_t wanted) { return entry.first < wanted; });
    if (at != sources.end() && at->first == place) return at->second;
  }
  const auto element = thaw<dom::element>(raw_);
  return element.is_bool() ? fmt::format("{}", bool(element)) : number_text(element);
}

uint32_t Reader::line() const {
  const Document* document = sink_->document;
  if (document == nullptr || document->lines.empty()) return 0;
  const size_t place = position();
  return place < document->lines.size() ? document->lines[place] : 0;
}

// Where the walk from the root to this value stands in Document::lines.
size_t Reader::position() const {
  size_t position = 0;
  for (const Reader* step = this; step->parent_ != nullptr; step = step->parent_) {
    const auto parent = thaw<dom::element>(step->parent_->raw_);
    ++position;
    size_t index = 0;
    if (step->in_array_) {
      for (const dom::element item : dom::array(parent)) {
        if (index++ == step->index_) break;
        position += count_values(item);
      }
    } else {
      for (const dom::key_value_pair member : dom::object(parent)) {
        if (member.key.data() == step->key_.data()) break;
        position += count_values(member.value);
      }
    }
  }
  return position;
}

void Reader::report(const std::string& path, uint32_t line, std::string message) const {
  const std::string file = sink_->document == nullptr ? "" : sink_->document->file;
  if (sink_->problems.size() == ProblemSink::kProblemsMax) {
    sink_->problems.push_back({file, static_cast<int>(line), "",
                               fmt::format("this object has more than {} mistakes; the others are told when these are "
                                           "mended",
                                           ProblemSink::kProblemsMax)});
    return;
  }
  sink_->problems.push_back(Problem{file, static_cast<int>(line), printable(path), printable(message, 1000)});
}

void Reader::contradiction(std::string message) const {
  if (!sink_->full()) report(path(), line(), std::move(message));
}

void Reader::contradiction_at(std::string_view key, std::string message) const {
  for (Members members(*this); members.next();)
    if (members.key() == key) return members.value().contradiction(std::move(message));
}

void Reader::problem(std::string message) const {
  if (sink_->full()) return;
  contradiction(std::move(message));
  sink_->told.add(path());
}

void Reader::problem_at(std::string_view key, std::string message) const {
  if (sink_->full()) return;
  for (Members members(*this); members.next();)
    if (members.key() == key) return members.value().problem(std::move(message));
  std::string missing = append_key(path(), key);
  report(missing, line(), std::move(message));
  sink_->told.add(std::move(missing));
}

void Reader::problem_at(std::string_view key, size_t index, std::string message) const {
  if (sink_->full()) return;
  for (Members members(*this); members.next();) {
    if (members.key() != key) continue;
    for (Items items(members.value()); items.next();)
      if (items.index() == index) return items.value().problem(std::move(message));
  }
  problem_at(key, std::move(message));
}

void Reader::problem_below(std::span<const std::string_view> keys, std::string message) const {
  if (keys.size() <= 1) return keys.empty() ? problem(std::move(message)) : problem_at(keys[0], std::move(message));
  for (Members members(*this); members.next();)
    if (members.key() == keys[0]) return members.value().problem_below(keys.subspan(1), std::move(message));
  problem(std::move(message));
}

bool Reader::unreadable(std::string_view text) const {
  return sink_->document != nullptr && sink_->document->damaged && text.find(kBadByte) != std::string_view::npos;
}

bool Reader::has_unreadable_key() const {
  const auto element = thaw<dom::element>(raw_);
  if (!element.is_object()) return false;
  const dom::object members(element);
  return std::any_of(members.begin(), members.end(), [&](const auto& member) { return unreadable(member.key); });
}

void Reader::misspelt_field(const std::vector<std::string_view>& known) const {
  const std::string_view near = closest(key_, known);
  if (near.empty() || sink_->full()) return;
  problem(fmt::format("unknown field; did you mean '{}'?", near));
  sink_->told.add_unknown_field(parent_->path(), key_);
}

// What is missing where a misplaced field belongs is meant by it; so is that place itself, where it is missing, too.
void Reader::unknown_field(const std::vector<std::string_view>& known) const {
  if (!strict() || sink_->full()) return;
  const std::string object = parent_->path();
  std::optional<Misplaced> misplaced;
  if (sink_->document != nullptr) misplaced = find_misplaced(sink_->document->kind, object, key_, known);
  if (!misplaced) {
    const std::string_view near = closest(key_, known);
    problem(near.empty() ? "unknown field; remove it, or check its indentation"
                         : fmt::format("unknown field; did you mean '{}'?", near));
    return sink_->told.add_unknown_field(object, key_);
  }
  const auto& [field, home] = *misplaced;
  if (field != key_) sink_->told.add_unknown_field(object, key_);
  problem(field == key_ ? fmt::format("unknown field; it belongs under {}", home)
                        : fmt::format("unknown field; did you mean '{}', which belongs under {}?", field, home));
  sink_->told.add_unknown_field(home, field);
  if (!home.starts_with(object)) return;
  const std::string_view steps = std::string_view(home).substr(object.empty() ? 0 : object.size() + 1);
  const std::string_view first = steps.substr(0, steps.find('.'));
  if (!has_member(*parent_, first)) sink_->told.add_unknown_field(object, first);
}

bool Reader::sound(std::span<const std::string_view> keys) const {
  const ToldPlaces& told = sink_->told;
  const bool damaged = sink_->document != nullptr && sink_->document->damaged;
  if (told.empty() && !damaged) return true;
  const std::string_view key = keys[0];
  const std::string here = path(), below = append_key(here, key);
  if (told.at(here) || told.at(below) || told.misspelt(here, key)) return false;
  if (keys.size() == 1 && !damaged) return !told.within(below);
  for (Members members(*this); members.next();)
    if (members.key() == key) return keys.size() == 1 ? !told.within(below) : members.value().sound(keys.subspan(1));
  std::string place = below;  // of what is missing
  for (const std::string_view step : keys.subspan(1)) {
    if (told.misspelt(place, step)) return false;
    place = append_key(std::move(place), step);
  }
  return !damaged || !has_unreadable_key();
}

}  // namespace berth::api
