// Manifests: whatever the bytes, reading and decoding end with objects or printable problems.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/decode.h"
#include "base/check.h"
#include "base/printable.h"
#include "workloads/kinds.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  api::Problems problems;
  for (const api::Document& document : api::read_documents(text, "fuzz.yaml", problems)) {
    const size_t before = problems.size();
    const auto object = api::decode(document, problems);
    check(!object || problems.size() == before, "an object and problems of it exclude each other");
    check(object || problems.size() > before || document.damaged, "what is not decoded is told of");
    check(!document.damaged || !problems.empty(), "bad bytes are told of");
    if (const auto* kind = object ? workloads::find_kind(*object) : nullptr) {
      constexpr int32_t kPodsMax = 100;  // expansion costs what it says; the fuzzer need not
      const auto* deployment = std::get_if<api::Deployment>(&*object);
      if (deployment != nullptr && deployment->replicas <= kPodsMax) (void)kind->expand(*object, {});
    }
  }
  for (const api::Problem& problem : problems) {
    const std::string shown = to_string(problem);
    check(!problem.message.empty() && printable(shown, shown.size()) == shown, "problems are printable");
  }
  api::Problems plain_problems;
  (void)api::read_plain_documents(text, "fuzz.yaml", plain_problems);
  return 0;
}
