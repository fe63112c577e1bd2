// JSON from an API server: whatever the bytes, each decoder ends with a value or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/decode.h"
#include "api/requests.h"
#include "api/watch.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  if (const auto pod = api::decode_pod(json)) {
    for (const auto& [name, amount] : api::effective_requests(*pod)) check(amount >= 0, "requests are not negative");
    (void)api::host_ports(pod->spec);
  }
  (void)api::decode_node(json);
  if (const auto list = api::decode_list<api::Pod>(json))
    for (const auto& malformed : list->malformed) check(!malformed.error.message.empty(), "a malformed item says why");
  if (const auto event = api::decode_watch_event<api::Node>(json))
    check(event->object || event->malformed || event->error || event->type == api::WatchType::kBookmark,
          "an event has content");
  (void)api::decode_status(json, 500);
  return 0;
}
