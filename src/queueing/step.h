// Whether a Job and the Workload that it was admitted by are still about the same pods; for the desk's .cc files alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "queueing/seen.h"
#include "queueing/write.h"

namespace berth::queueing {

// Said of what a Job or pod says, and cannot be meant so.
inline constexpr std::string_view kNotAdmittedUntil = "; it is not admitted until that is mended";
// Why a Workload is not to be admitted whose Job has been deleted, and is kept by a finalizer.
inline constexpr std::string_view kJobIsDeleted = "its Job is being deleted";

// Its template has what the flavors add.
bool is_injected(const SeenJob& job);
// Suspended, without pods, and its template as it was before it was started: nothing of an admission is left in it.
bool is_at_rest(const SeenJob& job);
// Why the Workload, which has quota, has to be made as its Job is and to wait anew; empty: they are alike. How many
// pods run at a time counts, as fewer may have been admitted; not how many have ended. Source: Kueue's
// equivalentToWorkload, whose words these are.
std::string why_out_of_step(const SeenJob& job, const SeenWorkload& workload);

// Of a group of pods that was evicted: nobody owns it, so that the garbage collector does not take it with the last of
// its pods, and what it has waited and been through is kept for those that come in their place.
bool outlasts_pods(const SeenWorkload& seen);
// The write after which these own the Workload, and nobody else.
Write own_by(const SeenWorkload& seen, const std::vector<api::OwnerReference>& owners, Write::Party party);

}  // namespace berth::queueing
