// What the webhook refuses: what is certainly wrong, and what the rules forbid. Everything else passes.
//
// Pods and the templates of Jobs: webhook/pod_checks.h; names of queues that no queue can have; groups that are only
// half described; a Job that changes its queue while it runs or as it starts; pod sets of a Workload that change while
// it has quota; another berth.dev/user than was written (webhook/mutate.h). Kueue's objects: what api/kueue.h finds
// wrong with them. An object that is being deleted, or whose spec, labels and user stay as they are, passes, and of an
// update only what was not wrong before is refused: a rule that came later must not keep anyone from taking a finalizer
// off, or from stopping a queue. Pure functions.
#pragma once

#include "webhook/review.h"
#include "webhook/rules.h"

namespace berth::webhook {

AdmissionAnswer validate(const AdmissionRequest& request, const Rules& rules);

}  // namespace berth::webhook
