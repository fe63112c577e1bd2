// What a webhook is sent: whatever the bytes, they end with an answer or an error; what is answered can be applied, and
// what is converted comes back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/base64.h"
#include "base/check.h"
#include "webhook/convert.h"
#include "webhook/mutate.h"
#include "webhook/review.h"
#include "webhook/validate.h"

namespace berth::webhook {
namespace {

void admit(const Json& body) {
  const auto request = read_admission(body);
  if (!request) return;
  Rules rules;
  rules.unrequested_gpus = UnrequestedGpus::kDeny;
  rules.node_max["nvidia.com/gpu"] = 8;
  rules.pod_finalizer = true;
  const AdmissionAnswer changed = mutate(*request, rules);
  const Json response = write_admission(*request, changed)["response"];
  if (response.contains("patch")) {
    const Json patch = Json::parse(base64_decode(response["patch"].get<std::string>()).value());
    check(request->object.patch(patch) == changed.object, "the patch makes of the object what was decided");
  }
  const AdmissionAnswer judged = validate(*request, rules);
  check(judged.allowed == judged.message.empty(), "a denial says why");
}

void convert(const Json& body) {
  (void)answer_conversion(body);
  for (const std::string_view version : {kOlderVersion, kStoredVersion}) {
    UnpackBudget budget, budget_back;
    const auto there = convert_kueue(body, version, budget);
    if (there)
      check(convert_kueue(*there, body["apiVersion"].get<std::string>(), budget_back).has_value(),
            "there is a way back");
  }
}

}  // namespace
}  // namespace berth::webhook

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth::webhook;
  const auto body = parse_body(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!body) return 0;
  admit(*body);
  convert(*body);
  return 0;
}
