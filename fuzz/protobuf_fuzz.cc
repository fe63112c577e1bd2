// Protobuf from an API server: whatever the bytes, each becomes JSON that parses, and a decoder's value or error.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/decode.h"
#include "api/protobuf.h"
#include "api/protobuf_tables.h"
#include "base/check.h"

namespace {

using namespace berth;

// An object in protobuf as JSON, which must be JSON.
std::string json_of(std::string_view object, const api::ProtobufMessage& table) {
  std::string json;
  (void)api::append_protobuf_as_json(object, table, json);
  api::ProblemSink sink;
  check(bool(api::read_json(json, sink, [](const api::Reader& root) { root.expect(api::JsonType::kObject); })) &&
            sink.problems.empty(),
        "what comes out is a JSON object");
  return json;
}

void read(std::string_view object) {
  (void)api::decode_pod(json_of(object, api::kPodProtobuf));
  (void)api::decode_node(json_of(object, api::kNodeProtobuf));
  (void)json_of(object, api::kStatusProtobuf);
}

}  // namespace

// A list in its envelope, of which each item is read; anything else is taken for an object.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto list = api::protobuf_envelope(bytes);
  read(list ? list->object : bytes);
  if (!list) return 0;
  for (api::ProtobufCursor fields(list->object); fields.next();) read(fields.bytes());
  return 0;
}
