// What is wrong with a pod spec's use of GPUs, whoever it belongs to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "webhook/review.h"
#include "webhook/rules.h"

namespace berth::webhook {

// What was found: what is certainly wrong, what the policy forbids, and what the user should know.
struct Findings {
  std::vector<std::string> invalid, forbidden, warnings;
};

// A container that names GPUs in NVIDIA_VISIBLE_DEVICES and requests none.
struct Reach {
  std::string text;     // which, and what to do about it
  bool certain = true;  // false: the value comes from elsewhere and cannot be seen
};
// Of a pod or a pod template.
std::vector<Reach> unrequested_gpus(const Json& pod, std::string_view path);

// Checks a pod or a pod template (metadata and spec). `path` is where its spec is, "spec.template.spec", for messages.
// Certainly wrong: a GPU request that differs from its limit; more GPUs than any node has, where `rules` know.
// Forbidden or warned of: a container that names GPUs in NVIDIA_VISIBLE_DEVICES and requests none, which reaches for
// those of others. Warned of, too: annotations that look like one that asks for a share of a GPU and are none, and
// devices that are named before the pod is bound. A container in a pod that asks for a share of a GPU or claims devices
// requests some.
void check_pod(const Json& pod, std::string_view path, const Rules& rules, Findings& findings);

}  // namespace berth::webhook
