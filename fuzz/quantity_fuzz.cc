// Quantities, durations and times: read or refused; what is written reads back the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/time.h"
#include "model/quantity.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::string_view name : {"cpu", "memory", "nvidia.com/gpu"}) {
    const auto amount = model::parse_resource(name, text);
    if (!amount) continue;
    check(*amount >= 0, "amounts are not negative");
    const auto again = model::parse_resource(name, model::format_resource(name, *amount));
    check(again && *again == *amount, "an amount reads back the same");
  }
  const auto units = model::parse_quantity(text);
  const auto millis = model::parse_quantity(text, 3);
  check(!millis || units, "what fits in thousandths fits in units");
  (void)parse_duration(text);
  if (const auto time = parse_rfc3339(text))
    check(parse_rfc3339(format_rfc3339(*time)).has_value(), "a time reads back");
  return 0;
}
