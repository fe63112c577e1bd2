#include "api/reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "api/reader_raw.h"
#include "base/printable.h"

namespace berth::api {
namespace {

namespace dom = simdjson::dom;
using ElementType = dom::element_type;

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
  if (found == JsonType::kString && unreadable(std::string_view(thaw<dom::element>(raw_)))) {
    sink_->told.add(path());
    return false;
  }
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
  // Labels are kept in order, in which the API server writes them; one by one, many others would cost their square.
  std::vector<std::pair<std::string_view, std::string>> unordered;
  std::string_view last;
  for (Members members(*this); members.next();) {
    std::string value;
    if (!members.value().is_null() && !members.value().read(value)) {
      ok = false;
      continue;
    }
    if (unordered.empty() && last <= members.key()) out.set(std::string(members.key()), std::move(value));
    else unordered.emplace_back(members.key(), std::move(value));
    last = members.key();
  }
  if (unordered.empty()) return ok;
  unordered.insert(unordered.begin(), out.begin(), out.end());
  std::stable_sort(unordered.begin(), unordered.end(), [](auto& a, auto& b) { return a.first < b.first; });
  model::Labels all;
  for (auto& [key, value] : unordered) all.set(std::string(key), std::move(value));
  out = std::move(all);
  return ok;
}

bool Reader::read(std::vector<std::string>& out) const {
  if (!expect(JsonType::kArray)) return false;
  out.clear();
  bool ok = true;
  for (Items items(*this); items.next();) {
    std::string& item = out.emplace_back();  // null is the empty string, as in the API server
    ok &= items.value().is_null() || items.value().read(item);
  }
  return ok;
}

bool Reader::read_string_or_number(std::string& out) const {
  const JsonType found = type();
  if (found != JsonType::kInteger && found != JsonType::kFloat) return read(out);
  out = number_text(thaw<dom::element>(raw_));
  return true;
}

bool has_member(const Reader& object, std::string_view key) {
  for (Members members(object); members.next();)
    if (members.key() == key && !members.value().is_null()) return true;
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
  while (at_.index != end_.index) {
    auto at = thaw<dom::object::iterator>(at_);
    value_.key_ = at.key();
    value_.raw_ = std::bit_cast<Reader::Raw>(at.value());
    at_ = std::bit_cast<Reader::Raw>(++at);
    if (!value_.unreadable(value_.key_)) return true;
    value_.sink_->told.add(value_.path());
  }
  return false;
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
