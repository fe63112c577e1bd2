// Times of workloads: when time alone has one leave.
//
// Whatever a workload waits for in time is one moment, Record::due. When it comes the workload is looked at like one
// with new facts.
#include <fmt/format.h>

#include <algorithm>

#include "quota/admission.h"

namespace berth::quota {

std::optional<Time> Admission::next_due() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

void Admission::wake_due() {
  while (!due_.empty() && due_.begin()->first <= now_) {
    const WorkloadId id = due_.begin()->second;
    due_.erase(due_.begin());
    record(id).due.reset();
    touched_.push_back(id);
    ++epoch_;
  }
}

void Admission::schedule(WorkloadId id) {
  Record& record = this->record(id);
  const std::optional<Time> next = deadline(record);
  if (next == record.due) return;
  if (record.due) due_.erase({*record.due, id});
  record.due = next;
  if (next) due_.emplace(*next, id);
}

// When something is to be done about the workload that is not to be done yet.
std::optional<Time> Admission::deadline(const Record& record) const {
  if (!record.admitted || record.standing != Standing::kHolding || leaving(record)) return std::nullopt;
  const std::optional<Duration>& limit = record.status.workload.max_execution;
  if (!limit) return std::nullopt;
  return *record.admitted + (*limit - record.ran);
}

// Why a workload that is admitted may not go on.
std::optional<EvictionReason> Admission::overdue(const Record& record) const {
  const std::optional<Duration>& limit = record.status.workload.max_execution;
  if (record.admitted && limit && record.ran + (now_ - *record.admitted) >= *limit)
    return EvictionReason{"DeactivatedDueToMaximumExecutionTimeExceeded",
                          "The workload is deactivated due to exceeding the maximum execution time", true};
  return std::nullopt;
}

// It is not admitted any more. One that was deactivated for what it did in time begins anew when it is active again.
void Admission::end_term(Record& record) {
  if (record.admitted) record.ran = record.ran + (now_ - *record.admitted);
  record.admitted.reset();
}

// Somebody made it active again: it begins with all its time.
void Admission::reactivate(Record& record) {
  if (record.deactivation) record.ran = {};
  record.deactivation.reset();
}

}  // namespace berth::quota
