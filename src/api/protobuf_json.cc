#include "api/protobuf_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "api/protobuf.h"
#include "base/printable.h"
#include "base/time.h"

namespace berth::api {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kMapKey = 1, kMapValue = 2;

// True if no byte of it has to be looked at: ASCII without control characters, quotes and backslashes.
bool is_plain(std::string_view text) {
  unsigned special = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    special |= static_cast<unsigned>(static_cast<uint8_t>(byte - 0x20) >= 0x60) | static_cast<unsigned>(byte == '"') |
               static_cast<unsigned>(byte == '\\');
  }
  return special == 0;
}

// What is appended to a string in many small parts, which its own append() is slow at: the string is made longer than
// needed, and cut by finish().
class Text {
 public:
  explicit Text(std::string& out, size_t expected) : out_(out), size_(out.size()) { out_.resize(size_ + expected); }
  void finish() { out_.resize(size_); }

  void put(char c) {
    make_room(1);
    out_[size_++] = c;
  }
  void put(std::string_view text) {
    make_room(text.size());
    put_in_room(text);
  }
  // "name":
  void put_key(std::string_view name) {
    make_room(name.size() + 3);
    out_[size_++] = '"';
    put_in_room(name);
    out_[size_++] = '"';
    out_[size_++] = ':';
  }
  void put_number(int64_t number) {
    const fmt::format_int digits(number);
    put(std::string_view(digits.data(), digits.size()));
  }
  void put_quoted(std::string_view text) {
    make_room(text.size() + 2);
    out_[size_++] = '"';
    if (is_plain(text)) put_in_room(text);
    else put_special(text);
    put('"');
  }

 private:
  // As encoding/json writes strings: a byte that is no UTF-8 becomes U+FFFD.
  void put_special(std::string_view text) {
    while (!text.empty()) {
      const auto byte = static_cast<uint8_t>(text.front());
      const size_t length = utf8_length(text);
      if (byte < 0x20) put(fmt::format("\\u{:04x}", byte));
      else if (byte == '"' || byte == '\\') put('\\'), put(text.front());
      else put(length > 0 ? text.substr(0, length) : "\xEF\xBF\xBD");
      text.remove_prefix(std::max<size_t>(length, 1));
    }
  }
  void put_in_room(std::string_view text) {
    std::copy(text.begin(), text.end(), out_.data() + size_);
    size_ += text.size();
  }
  void make_room(size_t bytes) {
    if (out_.size() - size_ < bytes) out_.resize(std::max(2 * out_.size(), size_ + bytes));
  }

  std::string& out_;
  size_t size_;
};

WireType wire_type_of(ProtobufKind kind) {
  return kind == ProtobufKind::kInteger || kind == ProtobufKind::kBool ? WireType::kVarint : WireType::kBytes;
}

bool may_repeat(ProtobufKind kind) {
  switch (kind) {
    case ProtobufKind::kTexts:
    case ProtobufKind::kMessages:
    case ProtobufKind::kTextMap:
    case ProtobufKind::kQuantityMap: return true;
    default: return false;
  }
}

// Where a message stands, for the path of a problem.
struct Place {
  const Place* parent = nullptr;
  std::string_view name{};
};

class JsonWriter {
 public:
  JsonWriter(std::string& json, size_t expected) : json_(json, expected) { found_.reserve(128); }

  void object(std::string_view bytes, const ProtobufMessage& table, const Place& place, int depth) {
    json_.put('{');
    bool first = true;
    members(bytes, table, place, depth, first);
    json_.put('}');
  }

  Status finish() && {
    json_.finish();
    return problem_.empty() ? Status{} : fail(ErrorCode::kInvalidInput, std::move(problem_));
  }

 private:
  // A field as it came; `next`: the one after it of the same number.
  struct Found {
    uint64_t varint;
    std::string_view bytes;
    uint32_t next;
  };
  // Of one number, in found_.
  struct Chain {
    uint32_t first, last;
  };
  using Chains = std::array<Chain, kProtobufFieldsMax>;  // as many as the table has fields are filled

  // Reads all fields first, since JSON wants those of one number side by side and protobuf need not.
  void members(std::string_view bytes, const ProtobufMessage& table, const Place& place, int depth, bool& first) {
    if (depth > kProtobufDepthMax) return problem(place, "is nested too deep");
    const size_t mark = found_.size();
    Chains chains;
    std::fill_n(chains.begin(), table.count, Chain{kNone, kNone});
    collect(bytes, table, place, chains);
    for (size_t i = 0; i < table.count; ++i)
      if (chains[i].first != kNone) member(table.fields[i], chains[i], place, depth, first);
    found_.resize(mark);
  }

  void collect(std::string_view bytes, const ProtobufMessage& table, const Place& place, Chains& chains) {
    size_t hint = 0;  // fields come in the order of their numbers, which is much that of the table
    ProtobufCursor cursor(bytes);
    while (cursor.next()) {
      if (!table.has(cursor.number())) continue;
      size_t at = hint;
      while (table.fields[at].number != cursor.number()) at = at + 1 == table.count ? 0 : at + 1;
      hint = at;
      const ProtobufField& field = table.fields[at];
      if (cursor.wire_type() != wire_type_of(field.kind)) {
        problem(place, fmt::format("has {} of another type", field.name));
        continue;
      }
      Chain& chain = chains[at];
      const auto index = static_cast<uint32_t>(found_.size());
      found_.push_back({cursor.varint(), cursor.bytes(), kNone});
      if (chain.first == kNone) chain.first = index;
      else if (may_repeat(field.kind)) found_[chain.last].next = index;
      else problem(place, fmt::format("has {} twice", field.name)), chain.first = index;
      chain.last = index;
    }
    if (!cursor.wrong().empty()) problem(place, cursor.wrong());
  }

  void key(const ProtobufField& field, bool& first) {
    if (!first) json_.put(',');
    first = false;
    json_.put_key(field.name);
  }

  void member(const ProtobufField& field, const Chain& chain, const Place& place, int depth, bool& first) {
    const Found one = found_[chain.first];
    const Place here{&place, field.name};
    switch (field.kind) {
      case ProtobufKind::kText:
        if (one.bytes.empty() && !field.keeps_zero) return;
        key(field, first);
        return json_.put_quoted(one.bytes);
      case ProtobufKind::kInteger:
        if (one.varint == 0 && !field.keeps_zero) return;
        key(field, first);
        return json_.put_number(static_cast<int64_t>(one.varint));
      case ProtobufKind::kBool:
        if (one.varint == 0 && !field.keeps_zero) return;
        key(field, first);
        json_.put(one.varint == 0 ? "false" : "true");
        return;
      case ProtobufKind::kTime: return time(field, one.bytes, here, first);
      case ProtobufKind::kMessage: key(field, first); return object(one.bytes, field.message, here, depth + 1);
      case ProtobufKind::kInlined: return members(one.bytes, field.message, place, depth + 1, first);
      case ProtobufKind::kTexts:
      case ProtobufKind::kMessages: key(field, first); return list(field, chain, here, depth);
      case ProtobufKind::kTextMap:
      case ProtobufKind::kQuantityMap: key(field, first); return map(field, chain, here);
    }
  }

  void list(const ProtobufField& field, const Chain& chain, const Place& place, int depth) {
    json_.put('[');
    for (uint32_t at = chain.first; at != kNone; at = found_[at].next) {
      if (at != chain.first) json_.put(',');
      if (field.kind == ProtobufKind::kTexts) json_.put_quoted(found_[at].bytes);
      else object(found_[at].bytes, field.message, place, depth + 1);
    }
    json_.put(']');
  }

  // A map is a list of messages with a key and a value each.
  void map(const ProtobufField& field, const Chain& chain, const Place& place) {
    json_.put('{');
    for (uint32_t at = chain.first; at != kNone; at = found_[at].next) {
      const auto [key, value] = pair(found_[at].bytes, place);
      if (at != chain.first) json_.put(',');
      json_.put_quoted(key);
      json_.put(':');
      // A Quantity has its text as field 1.
      json_.put_quoted(field.kind == ProtobufKind::kTextMap ? value : pair(value, place).first);
    }
    json_.put('}');
  }

  std::pair<std::string_view, std::string_view> pair(std::string_view message, const Place& place) {
    std::pair<std::string_view, std::string_view> out;
    ProtobufCursor cursor(message);
    while (cursor.next()) {
      if (cursor.number() != kMapKey && cursor.number() != kMapValue) continue;
      if (cursor.wire_type() != WireType::kBytes) problem(place, "has a member of another type");
      (cursor.number() == kMapKey ? out.first : out.second) = cursor.bytes();
    }
    if (!cursor.wrong().empty()) problem(place, cursor.wrong());
    return out;
  }

  void time(const ProtobufField& field, std::string_view bytes, const Place& place, bool& first) {
    constexpr int64_t kSecondsMax = 9'000'000'000;  // the year 2255; base/time.h counts nanoseconds
    if (bytes.empty()) return;
    int64_t seconds = 0;
    ProtobufCursor cursor(bytes);
    while (cursor.next())
      if (cursor.number() == 1) seconds = static_cast<int64_t>(cursor.varint());
    if (!cursor.wrong().empty()) return problem(place, cursor.wrong());
    if (seconds > kSecondsMax || seconds < -kSecondsMax) return problem(place, "is no time that Berth can count");
    key(field, first);
    json_.put_quoted(format_rfc3339(Time{seconds * 1'000'000'000}));
  }

  // Keeps the first.
  void problem(const Place& place, std::string_view what) {
    if (!problem_.empty()) return;
    std::string path;
    for (const Place* step = &place; step != nullptr; step = step->parent)
      if (!step->name.empty()) path = path.empty() ? std::string(step->name) : fmt::format("{}.{}", step->name, path);
    problem_ = fmt::format("{} {} (in protobuf)", path.empty() ? "the object" : path, what);
  }

  Text json_;
  std::vector<Found> found_;
  std::string problem_;
};

}  // namespace

Status append_protobuf_as_json(std::string_view object, const ProtobufMessage& table, std::string& json) {
  JsonWriter writer(json, object.size());
  writer.object(object, table, Place{}, 0);
  return std::move(writer).finish();
}

}  // namespace berth::api
