#include "api/protobuf.h"

#include <fmt/format.h>

namespace berth::api {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);

// Of runtime.Unknown, and of the TypeMeta within it.
constexpr uint32_t kTypeMeta = 1, kRaw = 2, kContentEncoding = 3;
constexpr uint32_t kKind = 2;

std::string_view kind_of(std::string_view type_meta) {
  std::string_view kind;
  ProtobufCursor cursor(type_meta);
  while (cursor.next())
    if (cursor.number() == kKind && cursor.wire_type() == WireType::kBytes) kind = cursor.bytes();
  return kind;
}

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

Result<ProtobufEnvelope> protobuf_envelope(std::string_view body) {
  if (!is_protobuf(body)) return fail(ErrorCode::kInvalidInput, "does not begin as Kubernetes protobuf does");
  body.remove_prefix(kMagic.size());
  ProtobufEnvelope out;
  ProtobufCursor cursor(body);
  while (cursor.next()) {
    if (cursor.wire_type() != WireType::kBytes) continue;
    if (cursor.number() == kTypeMeta) out.kind = kind_of(cursor.bytes());
    else if (cursor.number() == kRaw) out.object = cursor.bytes();
    else if (cursor.number() == kContentEncoding && !cursor.bytes().empty())
      return fail(ErrorCode::kUnsupported, "is encoded once more within its envelope");
  }
  if (!cursor.wrong().empty()) return fail(ErrorCode::kInvalidInput, fmt::format("the envelope {}", cursor.wrong()));
  return out;
}

}  // namespace berth::api
