// Protobuf as the API server writes it: the fields of one message, and the envelope around an object or a list.
//
// Only the wire format (https://protobuf.dev/programming-guides/encoding) and runtime.Unknown of k8s.io/apimachinery;
// what the fields mean is told by tables (api/protobuf_json.h). Nothing is copied: what is handed out points into the
// bytes given. Whatever the bytes, reading ends and stays within them. Groups, which Kubernetes never writes, are
// broken input. No I/O.
//
//   for (ProtobufCursor cursor(message); cursor.next();) use(cursor.number(), cursor.bytes());
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::api {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

class ProtobufCursor {
 public:
  explicit ProtobufCursor(std::string_view message) : rest_(message) {}

  // The next field; false at the end, and where the rest cannot be read.
  bool next();
  uint32_t number() const { return number_; }
  WireType wire_type() const { return wire_type_; }
  uint64_t varint() const { return varint_; }        // of kVarint
  std::string_view bytes() const { return bytes_; }  // of kBytes: a string or a message; of kFixed*: the number

  // What is wrong with the rest, once next() is false; empty: it ended in order.
  std::string_view wrong() const { return wrong_; }

 private:
  static constexpr uint32_t kNumberMax = (uint32_t{1} << 29) - 1;

  bool stop(std::string_view wrong);
  bool read_varint(uint64_t& out) {
    if (rest_.empty() || static_cast<uint8_t>(rest_.front()) >= 0x80) return read_long_varint(out);
    out = static_cast<uint8_t>(rest_.front());  // most have one byte
    rest_.remove_prefix(1);
    return true;
  }
  bool read_long_varint(uint64_t& out);
  bool take(uint64_t size) {
    if (size > rest_.size()) return stop("ends within a field");
    bytes_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  uint32_t number_ = 0;
  WireType wire_type_ = WireType::kVarint;
  uint64_t varint_ = 0;
  std::string_view bytes_;
  std::string_view wrong_;
};

inline bool ProtobufCursor::next() {
  if (rest_.empty()) return false;
  uint64_t key = 0, size = 0;
  if (!read_varint(key)) return false;
  if (key >> 3 == 0 || key >> 3 > kNumberMax) return stop("has a field without a valid number");
  number_ = static_cast<uint32_t>(key >> 3);
  wire_type_ = static_cast<WireType>(key & 7);
  bytes_ = {};
  varint_ = 0;
  switch (wire_type_) {
    case WireType::kBytes: return read_varint(size) && take(size);
    case WireType::kVarint: return read_varint(varint_);
    case WireType::kFixed64: return take(8);
    case WireType::kFixed32: return take(4);
  }
  return stop("has a field of a kind that Kubernetes does not write");
}

// What client-go sends as Accept for core kinds: a server or proxy without protobuf answers JSON.
inline constexpr std::string_view kAcceptProtobuf = "application/vnd.kubernetes.protobuf, application/json";

// True if it begins with the four bytes of an envelope, which no JSON does.
bool is_protobuf(std::string_view body);

// runtime.Unknown: an object with its kind, both within the text that was read.
struct ProtobufEnvelope {
  std::string_view kind{};
  std::string_view object{};
};

// Errors: not an envelope, or one whose content is encoded in a way of its own.
Result<ProtobufEnvelope> protobuf_envelope(std::string_view body);

}  // namespace berth::api
