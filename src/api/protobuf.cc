#include "api/protobuf.h"

#include <fmt/format.h>

namespace berth::api {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);

// Of runtime.Unknown.
constexpr uint32_t kRaw = 2, kContentEncoding = 3;

constexpr uint32_t kNumberMax = (uint32_t{1} << 29) - 1;

}  // namespace

bool ProtobufCursor::stop(std::string_view wrong) {
  rest_ = {};
  wrong_ = wrong;
  return false;
}

bool ProtobufCursor::read_varint(uint64_t& out) {
  constexpr int kBytesMax = 10;
  out = 0;
  for (int i = 0; i < kBytesMax; ++i) {
    if (rest_.empty()) return stop("ends within a number");
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    if (i == kBytesMax - 1 && byte > 1) break;
    out |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte < 0x80) return true;
  }
  return stop("has a number of more than 64 bits");
}

bool ProtobufCursor::take(uint64_t size) {
  if (size > rest_.size()) return stop("ends within a field");
  bytes_ = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

bool ProtobufCursor::next() {
  if (rest_.empty()) return false;
  uint64_t key = 0, size = 0;
  if (!read_varint(key)) return false;
  if (key >> 3 == 0 || key >> 3 > kNumberMax) return stop("has a field without a valid number");
  number_ = static_cast<uint32_t>(key >> 3);
  wire_type_ = static_cast<WireType>(key & 7);
  bytes_ = {};
  varint_ = 0;
  switch (wire_type_) {
    case WireType::kVarint: return read_varint(varint_);
    case WireType::kFixed64: return take(8);
    case WireType::kBytes: return read_varint(size) && take(size);
    case WireType::kFixed32: return take(4);
  }
  return stop("has a field of a kind that Kubernetes does not write");
}

bool is_protobuf(std::string_view body) { return body.starts_with(kMagic); }

Result<std::string_view> protobuf_object(std::string_view body) {
  if (!is_protobuf(body)) return fail(ErrorCode::kInvalidInput, "does not begin as Kubernetes protobuf does");
  body.remove_prefix(kMagic.size());
  std::string_view object;
  ProtobufCursor cursor(body);
  while (cursor.next()) {
    if (cursor.wire_type() != WireType::kBytes) continue;
    if (cursor.number() == kRaw) object = cursor.bytes();
    else if (cursor.number() == kContentEncoding && !cursor.bytes().empty())
      return fail(ErrorCode::kUnsupported, "is encoded once more within its envelope");
  }
  if (!cursor.wrong().empty()) return fail(ErrorCode::kInvalidInput, fmt::format("the envelope {}", cursor.wrong()));
  return object;
}

}  // namespace berth::api
