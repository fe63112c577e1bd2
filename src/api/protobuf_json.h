// Kubernetes protobuf becomes the JSON text that the decoders read, by tables of what they read.
//
// So there is one decoder for each kind, whichever way an object came. The text has what the tables name and nothing
// else, which makes it shorter than what the server would have sent, and is in the order of the decoders' own tables,
// so that each member is found at once. Zeros: Go writes every field that is no pointer, JSON leaves most of these out
// when they are zero; so a zero is left out unless its field keeps it, which those behind a pointer do (present means
// set) and those that JSON always has. Times are to the second, as metav1.Time has them. Thread-safe; no I/O.
//
// Invariants: 1. whatever the bytes, the text appended is one JSON object in valid UTF-8; 2. it holds what could be
// read of broken input, each message up to where it breaks; 3. depth is bounded by kProtobufDepthMax, time by the
// size of the bytes.
//
//   constexpr ProtobufField kTaint[] = {text(1, "key"), text(2, "value"), kept(text(3, "effect"))};
//   constexpr ProtobufField kSpec[] = {flag(4, "unschedulable"), messages(5, "taints", kTaint)};
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::api {

enum class ProtobufKind : uint8_t {
  kText,
  kInteger,  // int32 and int64
  kBool,
  kTime,  // metav1.Time; without content: not set
  kMessage,
  kInlined,  // a message whose members stand in its parent in JSON
  kTexts,
  kMessages,
  kTextMap,
  kQuantityMap,
};

struct ProtobufField;

inline constexpr size_t kProtobufFieldsMax = 32;
inline constexpr int kProtobufDepthMax = 16;

// A table, as its fields refer to it.
struct ProtobufMessage {
  const ProtobufField* fields = nullptr;
  size_t count = 0;
  uint64_t numbers = 0;  // bit N: it has a field with number N

  constexpr ProtobufMessage() = default;
  template <size_t N>
  constexpr ProtobufMessage(const ProtobufField (&table)[N]);  // NOLINT: a table is one
  constexpr bool has(uint32_t number) const { return number < 64 && (numbers >> number & 1) != 0; }
};

struct ProtobufField {
  uint32_t number = 0;
  std::string_view name{};  // plain ASCII, in JSON
  ProtobufKind kind = ProtobufKind::kText;
  bool keeps_zero = false;  // of kText, kInteger and kBool
  ProtobufMessage message{};
};

template <size_t N>
constexpr ProtobufMessage::ProtobufMessage(const ProtobufField (&table)[N]) : fields(table), count(N) {
  static_assert(N <= kProtobufFieldsMax);
  for (const ProtobufField& field : table) numbers |= uint64_t{1} << field.number;  // below 64, or it does not compile
}

constexpr ProtobufField text(uint32_t number, std::string_view name) { return {number, name, ProtobufKind::kText}; }
constexpr ProtobufField integer(uint32_t number, std::string_view name) {
  return {number, name, ProtobufKind::kInteger};
}
constexpr ProtobufField flag(uint32_t number, std::string_view name) { return {number, name, ProtobufKind::kBool}; }
constexpr ProtobufField time(uint32_t number, std::string_view name) { return {number, name, ProtobufKind::kTime}; }
constexpr ProtobufField texts(uint32_t number, std::string_view name) { return {number, name, ProtobufKind::kTexts}; }
constexpr ProtobufField text_map(uint32_t number, std::string_view name) {
  return {number, name, ProtobufKind::kTextMap};
}
constexpr ProtobufField quantity_map(uint32_t number, std::string_view name) {
  return {number, name, ProtobufKind::kQuantityMap};
}
constexpr ProtobufField message(uint32_t number, std::string_view name, ProtobufMessage table) {
  return {number, name, ProtobufKind::kMessage, false, table};
}
constexpr ProtobufField messages(uint32_t number, std::string_view name, ProtobufMessage table) {
  return {number, name, ProtobufKind::kMessages, false, table};
}
constexpr ProtobufField inlined(uint32_t number, std::string_view name, ProtobufMessage table) {
  return {number, name, ProtobufKind::kInlined, false, table};
}
// A zero says something: a pointer that is set, or a member that JSON never leaves out.
constexpr ProtobufField kept(ProtobufField field) {
  field.keeps_zero = true;
  return field;
}

// Appends the JSON of one object. The Error says what could not be read; the text then holds the rest.
Status append_protobuf_as_json(std::string_view object, const ProtobufMessage& table, std::string& json);

}  // namespace berth::api
