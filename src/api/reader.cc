#include "api/reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "api/names.h"
#include "base/printable.h"

namespace berth::api {
namespace {

namespace dom = simdjson::dom;
using ElementType = dom::element_type;

template <typename T, typename Raw>
T thaw(const Raw& raw) {
  static_assert(sizeof(T) == sizeof(Raw) && std::is_trivially_copyable_v<T>);
  return std::bit_cast<T>(raw);
}

std::string_view name_of(JsonType type) {
  switch (type) {
    case JsonType::kNull: return "null";
    case JsonType::kBool: return "a boolean";
    case JsonType::kInteger: return "an integer";
    case JsonType::kFloat: return "a number with decimals";
    case JsonType::kString: return "a string";
    case JsonType::kArray: return "a list";
    case JsonType::kObject: return "an object";
  }
  return "";
}

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

// Shortest text that reads back as the same number, for messages and quantities.
std::string number_text(const dom::element& element) {
  if (element.is_int64()) return fmt::format("{}", int64_t(element));
  if (element.is_uint64()) return fmt::format("{}", uint64_t(element));
  return fmt::format("{}", double(element));
}

// What to do about a value of the wrong type.
std::string_view advice(JsonType wanted, JsonType found) {
  if (wanted == JsonType::kString && found == JsonType::kBool)
    return "; put the value in quotes (YAML reads true, yes, on, y, false, no, off and n as booleans)";
  if (wanted == JsonType::kString && (found == JsonType::kInteger || found == JsonType::kFloat))
    return "; put the value in quotes";
  if (wanted == JsonType::kArray && found == JsonType::kObject) return "; put '- ' before its first field";
  if ((wanted == JsonType::kInteger || wanted == JsonType::kBool) && found == JsonType::kString)
    return "; write the value without quotes";
  return "";
}

struct CachedParser {
  dom::parser parser;
  bool busy = false;
};

// Parsers keep their buffers between documents; one that served a huge one is not kept.
constexpr size_t kKeptCapacityMax = size_t{16} << 20;

}  // namespace

JsonType Reader::type() const {
  switch (thaw<dom::element>(raw_).type()) {
    case ElementType::NULL_VALUE: return JsonType::kNull;
    case ElementType::BOOL: return JsonType::kBool;
    case ElementType::INT64:
    case ElementType::UINT64: return JsonType::kInteger;
    case ElementType::DOUBLE: return JsonType::kFloat;
    case ElementType::STRING: return JsonType::kString;
    case ElementType::ARRAY: return JsonType::kArray;
    case ElementType::OBJECT: return JsonType::kObject;
  }
  return JsonType::kNull;
}

bool Reader::expect(JsonType wanted) const {
  const JsonType found = type();
  if (found == wanted) return true;
  // As a user would recognise it: scalars themselves, containers by kind.
  std::string shown(name_of(found));
  if (found == JsonType::kBool) shown = "the boolean " + source();
  else if (found == JsonType::kInteger || found == JsonType::kFloat) shown = "the number " + source();
  else if (found == JsonType::kString)
    shown = fmt::format("the string \"{}\"", printable(std::string_view(thaw<dom::element>(raw_)), 80));
  problem(fmt::format("expected {}, found {}{}", name_of(wanted), shown, advice(wanted, found)));
  return false;
}

size_t Reader::size() const {
  const auto element = thaw<dom::element>(raw_);
  if (element.is_array()) return dom::array(element).size();
  if (element.is_object()) return dom::object(element).size();
  return 0;
}

bool Reader::read(std::string_view& out) const {
  if (!expect(JsonType::kString)) return false;
  out = std::string_view(thaw<dom::element>(raw_));
  return true;
}

bool Reader::read(std::string& out) const {
  std::string_view text;
  if (!read(text)) return false;
  out.assign(text);
  return true;
}

bool Reader::read(bool& out) const {
  if (!expect(JsonType::kBool)) return false;
  out = bool(thaw<dom::element>(raw_));
  return true;
}

bool Reader::read(int64_t& out) const {
  const auto element = thaw<dom::element>(raw_);
  constexpr double kExactMax = int64_t{1} << 53;
  if (const double number = element.is_double() ? double(element) : 0.5;
      number == std::floor(number) && std::abs(number) <= kExactMax) {
    out = static_cast<int64_t>(number);  // 5.0 and 1e2 are integers to the API server, too
    return true;
  }
  if (!expect(JsonType::kInteger)) return false;
  if (!element.is_int64()) {
    problem(fmt::format("{} is out of range; the largest value is {}", source(), std::numeric_limits<int64_t>::max()));
    return false;
  }
  out = int64_t(element);
  return true;
}

bool Reader::read(int32_t& out) const {
  int64_t wide = 0;
  if (!read(wide)) return false;
  if (wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max()) {
    problem(fmt::format("{} is out of range; the value must be between {} and {}", source(),
                        std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
    return false;
  }
  out = static_cast<int32_t>(wide);
  return true;
}

bool Reader::read(Time& out) const {
  std::string_view text;
  if (!read(text)) return false;
  const Result<Time> time = parse_rfc3339(text);
  if (!time) {
    problem(time.error().message);
    return false;
  }
  out = *time;
  return true;
}

bool Reader::read(model::Labels& out) const {
  if (!expect(JsonType::kObject)) return false;
  bool ok = true;
  for (Members members(*this); members.next();) {
    std::string value;
    if (members.value().is_null()) value.clear();
    else if (!members.value().read(value)) {
      ok = false;
      continue;
    }
    out.set(std::string(members.key()), std::move(value));
  }
  return ok;
}

bool Reader::read(std::vector<std::string>& out) const {
  if (!expect(JsonType::kArray)) return false;
  out.clear();
  bool ok = true;
  for (Items items(*this); items.next();) ok &= items.value().read(out.emplace_back());
  return ok;
}

bool Reader::read_string_or_number(std::string& out) const {
  const JsonType found = type();
  if (found != JsonType::kInteger && found != JsonType::kFloat) return read(out);
  out = number_text(thaw<dom::element>(raw_));
  return true;
}

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
  if (sink_->problems.size() > ProblemSink::kProblemsMax) return;
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

void Reader::problem(std::string message) const { report(path(), line(), std::move(message)); }

void Reader::problem_at(std::string_view key, std::string message) const {
  for (Members members(*this); members.next();)
    if (members.key() == key) return members.value().problem(std::move(message));
  report(append_key(path(), key), line(), std::move(message));
}

void Reader::problem_at(std::string_view key, size_t index, std::string message) const {
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

void Reader::unknown_field(const std::vector<std::string_view>& known) const {
  if (!strict()) return;
  const std::string_view near = closest(key_, known);
  problem(near.empty() ? "unknown field; remove it, or check its indentation"
                       : fmt::format("unknown field; did you mean '{}'?", near));
}

bool Reader::sound(std::span<const std::string_view> keys) const {
  if (sink_->problems.empty()) return true;
  const std::string_view key = keys[0];
  const std::string here = printable(path()), below = printable(append_key(path(), key));
  for (const Problem& problem : sink_->problems) {
    const std::string_view place = problem.path;
    if (place == here) return false;
    if (!place.starts_with(below)) continue;
    const std::string_view rest = place.substr(below.size());
    if (rest.empty() || (keys.size() == 1 && (rest[0] == '.' || rest[0] == '['))) return false;
  }
  for (Members members(*this); members.next();) {
    if (members.key() == key) {
      if (keys.size() > 1 && !members.value().sound(keys.subspan(1))) return false;
    } else if (!closest(members.key(), {key}).empty()) {
      const std::string slip = printable(members.value().path());
      const auto unknown = [&](const Problem& problem) {
        return problem.path == slip && problem.message.starts_with("unknown field");
      };
      if (std::any_of(sink_->problems.begin(), sink_->problems.end(), unknown)) return false;
    }
  }
  return true;
}

bool has_member(const Reader& object, std::string_view key) {
  for (Members members(object); members.next();)
    if (members.key() == key && !members.value().is_null()) return true;
  return false;
}

bool misspelt(const Reader& object, std::string_view wanted) {
  for (Members members(object); members.next();)
    if (members.key() != wanted && !closest(members.key(), {wanted}).empty()) return true;
  return false;
}

Members::Members(const Reader& object) {
  const auto element = thaw<dom::element>(object.raw_);
  if (element.is_object()) {
    const dom::object members(element);
    at_ = std::bit_cast<Reader::Raw>(members.begin());
    end_ = std::bit_cast<Reader::Raw>(members.end());
  }
  value_.parent_ = &object;
  value_.sink_ = object.sink_;
}

bool Members::next() {
  if (at_.index == end_.index) return false;
  auto at = thaw<dom::object::iterator>(at_);
  value_.key_ = at.key();
  value_.raw_ = std::bit_cast<Reader::Raw>(at.value());
  at_ = std::bit_cast<Reader::Raw>(++at);
  return true;
}

Items::Items(const Reader& array) {
  const auto element = thaw<dom::element>(array.raw_);
  if (element.is_array()) {
    const dom::array items(element);
    at_ = std::bit_cast<Reader::Raw>(items.begin());
    end_ = std::bit_cast<Reader::Raw>(items.end());
  }
  value_.parent_ = &array;
  value_.in_array_ = true;
  value_.sink_ = array.sink_;
}

bool Items::next() {
  if (at_.index == end_.index) return false;
  auto at = thaw<dom::array::iterator>(at_);
  value_.index_ = next_index_++;
  value_.raw_ = std::bit_cast<Reader::Raw>(*at);
  at_ = std::bit_cast<Reader::Raw>(++at);
  return true;
}

Status read_json(std::string_view json, ProblemSink& sink, const std::function<void(const Reader&)>& use) {
  thread_local std::unique_ptr<CachedParser> cache;
  if (cache == nullptr || cache->parser.capacity() > kKeptCapacityMax) {
    if (cache == nullptr || !cache->busy) cache = std::make_unique<CachedParser>();
  }
  std::unique_ptr<CachedParser> nested;
  if (cache->busy) nested = std::make_unique<CachedParser>();
  CachedParser& cached = nested != nullptr ? *nested : *cache;
  dom::element root;
  if (const auto error = cached.parser.parse(json.data(), json.size(), true).get(root))
    return fail(ErrorCode::kInvalidInput, fmt::format("not valid JSON: {}", simdjson::error_message(error)));
  Reader reader;
  reader.raw_ = std::bit_cast<Reader::Raw>(root);
  reader.sink_ = &sink;
  cached.busy = true;
  use(reader);
  cached.busy = false;
  return {};
}

}  // namespace berth::api
