// Pods that reach for GPUs which they do not request: the webhook's rule (webhook/pod_checks.h), judged again by the
// scheduler, for clusters where nobody asks the webhook.
#pragma once

#include <string_view>

#include "apps/scheduler/seen.h"
#include "webhook/rules.h"

namespace berth::apps {

// Looks at a pod's JSON, and notes in `seen` what is to be said of it. With kDeny no node can serve a pod that
// certainly does, and every verdict says so. Of others' pods, and of those that are bound, nothing is noted. The text
// is read once more only where it names the variable.
void judge_reach(std::string_view json, webhook::UnrequestedGpus policy, SeenPod& seen);

}  // namespace berth::apps
