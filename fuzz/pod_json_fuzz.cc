// JSON from an API server: whatever the bytes, each decoder ends with a value or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/decode.h"
#include "api/requests.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  if (const auto pod = api::decode_pod(json)) {
    for (const auto& [name, amount] : api::effective_requests(*pod)) check(amount >= 0, "requests are not negative");
    (void)api::host_ports(pod->spec);
  }
  (void)api::decode_node(json);
  return 0;
}
