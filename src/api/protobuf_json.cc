#include "api/protobuf_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "api/protobuf.h"
#include "base/printable.h"
#include "base/time.h"

namespace berth::api {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kMapKey = 1, kMapValue = 2;

// As encoding/json writes strings: a byte that is no UTF-8 becomes U+FFFD.
void append_special(std::string& json, std::string_view text) {
  while (!text.empty()) {
    const auto byte = static_cast<uint8_t>(text.front());
    const size_t length = utf8_length(text);
    if (byte < 0x20) json += fmt::format("\\u{:04x}", byte);
    else if (byte == '"' || byte == '\\') json += '\\', json += text.front();
    else if (length > 0) json.append(text.substr(0, length));
    else json += "\xEF\xBF\xBD";
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

void append_text(std::string& json, std::string_view text) {
  bool plain = true;
  for (const char c : text) plain &= static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\';
  json += '"';
  if (plain) json.append(text);
  else append_special(json, text);
  json += '"';
}

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
  explicit JsonWriter(std::string& json) : json_(json) {}

  void object(std::string_view bytes, const ProtobufMessage& table, const Place& place, int depth) {
    json_ += '{';
    bool first = true;
    members(bytes, table, place, depth, first);
    json_ += '}';
  }

  Status status() && { return problem_.empty() ? Status{} : fail(ErrorCode::kInvalidInput, std::move(problem_)); }

 private:
  // A field as it came; `next`: the one after it of the same number.
  struct Found {
    uint64_t varint;
    std::string_view bytes;
    uint32_t next;
  };
  // Of one number, in found_.
  struct Chain {
    uint32_t first = kNone, last = kNone;
  };
  using Chains = std::array<Chain, kProtobufFieldsMax>;

  // Reads all fields first, since JSON wants those of one number side by side and protobuf need not.
  void members(std::string_view bytes, const ProtobufMessage& table, const Place& place, int depth, bool& first) {
    if (depth > kProtobufDepthMax) return problem(place, "is nested too deep");
    const size_t mark = found_.size();
    Chains chains;
    collect(bytes, table, place, chains);
    for (size_t i = 0; i < table.count; ++i)
      if (chains[i].first != kNone) member(table.fields[i], chains[i], place, depth, first);
    found_.resize(mark);
  }

  void collect(std::string_view bytes, const ProtobufMessage& table, const Place& place, Chains& chains) {
    size_t hint = 0;  // fields come in the order of their numbers, which is much that of the table
    ProtobufCursor cursor(bytes);
    while (cursor.next()) {
      size_t at = hint, tried = 0;
      while (tried < table.count && table.fields[at].number != cursor.number()) {
        at = at + 1 == table.count ? 0 : at + 1;
        ++tried;
      }
      if (tried == table.count) continue;
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
    if (!first) json_ += ',';
    first = false;
    json_ += '"';
    json_.append(field.name);
    json_ += "\":";
  }

  void member(const ProtobufField& field, const Chain& chain, const Place& place, int depth, bool& first) {
    const Found one = found_[chain.first];
    const Place here{&place, field.name};
    switch (field.kind) {
      case ProtobufKind::kText:
        if (one.bytes.empty() && !field.keeps_zero) return;
        key(field, first);
        return append_text(json_, one.bytes);
      case ProtobufKind::kInteger:
        if (one.varint == 0 && !field.keeps_zero) return;
        key(field, first);
        fmt::format_to(std::back_inserter(json_), "{}", static_cast<int64_t>(one.varint));
        return;
      case ProtobufKind::kBool:
        if (one.varint == 0 && !field.keeps_zero) return;
        key(field, first);
        json_ += one.varint == 0 ? "false" : "true";
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
    json_ += '[';
    for (uint32_t at = chain.first; at != kNone; at = found_[at].next) {
      if (at != chain.first) json_ += ',';
      if (field.kind == ProtobufKind::kTexts) append_text(json_, found_[at].bytes);
      else object(found_[at].bytes, field.message, place, depth + 1);
    }
    json_ += ']';
  }

  // A map is a list of messages with a key and a value each.
  void map(const ProtobufField& field, const Chain& chain, const Place& place) {
    json_ += '{';
    for (uint32_t at = chain.first; at != kNone; at = found_[at].next) {
      const auto [key, value] = pair(found_[at].bytes, place);
      if (at != chain.first) json_ += ',';
      append_text(json_, key);
      json_ += ':';
      // A Quantity has its text as field 1.
      append_text(json_, field.kind == ProtobufKind::kTextMap ? value : pair(value, place).first);
    }
    json_ += '}';
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
    append_text(json_, format_rfc3339(Time{seconds * 1'000'000'000}));
  }

  // Keeps the first.
  void problem(const Place& place, std::string_view what) {
    if (!problem_.empty()) return;
    std::string path;
    for (const Place* step = &place; step != nullptr; step = step->parent)
      if (!step->name.empty()) path = path.empty() ? std::string(step->name) : fmt::format("{}.{}", step->name, path);
    problem_ = fmt::format("{} {} (in protobuf)", path.empty() ? "the object" : path, what);
  }

  std::string& json_;
  std::vector<Found> found_;
  std::string problem_;
};

}  // namespace

Status append_protobuf_as_json(std::string_view object, const ProtobufMessage& table, std::string& json) {
  JsonWriter writer(json);
  writer.object(object, table, Place{}, 0);
  return std::move(writer).status();
}

}  // namespace berth::api
