#include "apps/unrequested_gpus.h"

#include <fmt/format.h>

#include <string>

#include "base/printable.h"

namespace berth::apps {

using webhook::UnrequestedGpus;

std::string_view to_string(UnrequestedGpus policy) {
  if (policy == UnrequestedGpus::kIgnore) return "ignore";
  return policy == UnrequestedGpus::kDeny ? "deny" : "warn";
}

UnrequestedGpus unrequested_gpus_named(std::string_view word) {
  if (word == "ignore") return UnrequestedGpus::kIgnore;
  return word == "deny" ? UnrequestedGpus::kDeny : UnrequestedGpus::kWarn;
}

void read_unrequested_gpus(const api::Reader& reader, UnrequestedGpus& out) {
  std::string word;
  if (!reader.read(word)) return;
  out = unrequested_gpus_named(word);
  if (to_string(out) != word) reader.problem(fmt::format("'{}' is none of: ignore, warn, deny", printable(word, 80)));
}

}  // namespace berth::apps
