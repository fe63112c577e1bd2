#include "api/protobuf.h"

#include <fmt/format.h>

namespace berth::api {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);

// Of runtime.Unknown.
constexpr uint32_t kRaw = 2, kContentEncoding = 3;

}  // namespace

bool ProtobufCursor::stop(std::string_view wrong) {
  rest_ = {};
  wrong_ = wrong;
  return false;
}

bool ProtobufCursor::read_long_varint(uint64_t& out) {
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
