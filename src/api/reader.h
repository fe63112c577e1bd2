// Reader: a cursor over one JSON value, which knows how it came there and where problems go.
//
// Objects are decoded by composing readers: a table of Fields per type, and small functions per field. Paths and line
// numbers are worked out only when something is wrong, so that good input costs little more than parsing it. A Reader
// lives on the stack of the function that walks the JSON and must not outlive it or its parent. One thread.
//
//   constexpr Field<Taint> kTaint[] = {{"key", [](const Reader& r, Taint& t) { r.read(t.key); }},
//                                      {"timeAdded"}};   // known to the API, not used
//   void read_taint(const Reader& r, Taint& out) { read_object(r, kTaint, out); }
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/told_places.h"
#include "base/result.h"
#include "base/time.h"
#include "model/labels.h"

namespace berth::api {

enum class JsonType : uint8_t { kNull, kBool, kInteger, kFloat, kString, kArray, kObject };

// Where problems of one document are collected. Strict: unknown fields and what the API server would refuse are
// problems.
struct ProblemSink {
  static constexpr size_t kProblemsMax = 1000;
  bool strict = false;
  const Document* document = nullptr;  // for file and lines; null for JSON from the API server
  Problems problems;                   // at most kProblemsMax, then one that says so
  ToldPlaces told = {};                // the paths of these, and of what bad bytes made unreadable
  bool full() const { return problems.size() > kProblemsMax; }  // what is told beyond is lost
};

class Reader {
 public:
  JsonType type() const;
  bool is_null() const { return type() == JsonType::kNull; }
  bool is_null_item() const { return in_array_ && is_null(); }
  bool strict() const { return sink_->strict; }

  // Each sets `out` and returns true, or reports the wrong type and returns false. Integers must be in range; there is
  // no conversion between types, as in the API server.
  bool read(std::string& out) const;
  bool read(std::string_view& out) const;
  bool read(bool& out) const;
  bool read(int32_t& out) const;
  bool read(int64_t& out) const;
  bool read(Time& out) const;
  bool read(model::Labels& out) const;
  bool read(std::vector<std::string>& out) const;
  template <typename T>
  bool read(std::optional<T>& out) const {
    T value{};
    const bool ok = read(value);
    if (ok) out = value;
    return ok;
  }
  // A string, or a number as JSON writes it: how quantities come.
  bool read_string_or_number(std::string& out) const;

  bool expect(JsonType wanted) const;  // true if the value has this type; otherwise reports it
  size_t size() const;                 // number of items or members; 0 for scalars

  // Reports a problem with this value, or with a member or item of it, which need not exist.
  void problem(std::string message) const;
  void problem_at(std::string_view key, std::string message) const;
  void problem_at(std::string_view key, size_t index, std::string message) const;
  // Reports that this value, or a member, does not go with another; sound() does not hear of it, for both were read.
  void contradiction(std::string message) const;
  void contradiction_at(std::string_view key, std::string message) const;
  // Reports it with the member so many steps below, or with the nearest of the steps to it that is there.
  void problem_below(std::span<const std::string_view> keys, std::string message) const;
  void problem_below(std::initializer_list<std::string_view> keys, std::string message) const {
    problem_below(std::span(keys.begin(), keys.size()), std::move(message));
  }
  // Reports, when strict, that this member is none of `known`, with a suggestion or the place where it belongs.
  void unknown_field(const std::vector<std::string_view>& known) const;
  // Reports, strict or not, that this member, which is none of `known`, is a slip of the pen for one of them, if it is.
  void misspelt_field(const std::vector<std::string_view>& known) const;
  // True if what was read of this member, or of one that is so many steps below, holds: nothing was reported of it or
  // of what is in it, and no unknown or unreadable field may be meant for it. Checks ask so that one mistake neither
  // hides others nor is told twice. O(1) while the document has no problems, then the members on the way and the
  // logarithm of the problems.
  bool sound(std::span<const std::string_view> keys) const;
  bool sound(std::initializer_list<std::string_view> keys) const { return sound(std::span(keys.begin(), keys.size())); }
  bool sound(std::string_view key) const { return sound({key}); }
  std::string source() const;  // a number or boolean as the file writes it, for messages
  std::string path() const;    // "spec.containers[0].name"

 private:
  friend class Members;
  friend class Items;
  friend Status read_json(std::string_view, ProblemSink&, const std::function<void(const Reader&)>&);

  // A simdjson::dom::element, which is two words, without its header.
  struct Raw {
    const void* document = nullptr;
    size_t index = 0;
  };

  void report(const std::string& path, uint32_t line, std::string message) const;
  // True if bad bytes, of which the text has told, were in this key or value: it is not judged.
  bool unreadable(std::string_view text) const;
  bool has_unreadable_key() const;
  uint32_t line() const;
  size_t position() const;  // in Document::lines

  Raw raw_;
  const Reader* parent_ = nullptr;
  std::string_view key_;  // within an object
  size_t index_ = 0;      // within an array
  bool in_array_ = false;
  ProblemSink* sink_ = nullptr;
};

// The members of an object, in order: for (Members m(reader); m.next();) use(m.key(), m.value()). None of a non-object.
class Members {
 public:
  explicit Members(const Reader& object);
  bool next();
  std::string_view key() const { return value_.key_; }
  const Reader& value() const { return value_; }

 private:
  Reader::Raw at_, end_;
  Reader value_;
};

// The items of an array, in order. None of anything else.
class Items {
 public:
  explicit Items(const Reader& array);
  bool next();
  size_t index() const { return value_.index_; }
  const Reader& value() const { return value_; }

 private:
  Reader::Raw at_, end_;
  size_t next_index_ = 0;
  Reader value_;
};

// True if the object has this member, and it is not null.
bool has_member(const Reader& object, std::string_view key);

// Parses `json` and calls `use` with its root; an Error when it is not JSON. What `use` finds wrong is in `sink`.
Status read_json(std::string_view json, ProblemSink& sink, const std::function<void(const Reader&)>& use);

// A member of T's JSON object. Without a function the name is known and not read.
template <typename T>
struct Field {
  std::string_view name;
  void (*read)(const Reader&, T&) = nullptr;
};

template <typename T, size_t N>
std::vector<std::string_view> names_of(const Field<T> (&fields)[N]) {
  std::vector<std::string_view> names;
  for (const Field<T>& field : fields) names.push_back(field.name);
  return names;
}

// Reads an object by its table. null members count as absent, null items as objects without members, as in the API
// server. Tables follow the API's order of fields, in which the server writes them, so that each is found at once.
template <typename T, size_t N>
void read_object(const Reader& reader, const Field<T> (&fields)[N], T& out) {
  if (reader.is_null_item() || !reader.expect(JsonType::kObject)) return;
  size_t start = 0;
  for (Members members(reader); members.next();) {
    const std::string_view key = members.key();
    size_t tried = 0, at = start;
    while (tried < N && fields[at].name != key) {
      at = at + 1 == N ? 0 : at + 1;
      ++tried;
    }
    if (tried == N && reader.strict()) members.value().unknown_field(names_of(fields));
    if (tried == N) continue;
    start = at + 1 == N ? 0 : at + 1;
    if (fields[at].read != nullptr && !members.value().is_null()) fields[at].read(members.value(), out);
  }
}

// Reads an array, each item by `read_item`.
template <typename T>
void read_list(const Reader& reader, std::vector<T>& out, void (*read_item)(const Reader&, T&)) {
  if (!reader.expect(JsonType::kArray)) return;
  out.clear();
  out.reserve(reader.size());
  for (Items items(reader); items.next();) read_item(items.value(), out.emplace_back());
}

}  // namespace berth::api
