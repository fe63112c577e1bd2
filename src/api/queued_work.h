// What Jobs and pods say of how they are queued, where it cannot be meant so: one rule for the webhook, which refuses
// it, for the scheduler, which lets it wait, and for the simulator, which takes no such input. Pure functions.
//
//   label kueue.x-k8s.io/max-exec-time-seconds                      whole seconds above 0
//   annotation kueue.x-k8s.io/job-min-parallelism                   above 0, and fewer than spec.parallelism
//   annotation kueue.x-k8s.io/job-completions-equal-parallelism     true or false; true where the Job is Indexed and
//                                                                   has as many completions as run at a time
// Source: Kueue's webhooks, https://kueue.sigs.k8s.io/docs/tasks/run/jobs/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::api {

// As it is written; none: it is not there.
struct QueuedWork {
  std::optional<std::string> max_execution;
  // Of Jobs alone.
  std::optional<std::string> min_parallelism, completions_follow;
  int64_t parallelism = 1, completions = 1;
  bool indexed = false;
  // It may run with fewer pods than it was made with, so that the least that will do may be all that it says.
  bool may_be_reduced = false;
};

struct QueuedProblem {
  std::string_view section, key;  // what says so: one of the "labels" or "annotations" of the metadata
  std::string field;              // what has to change, where it is something else: "spec.completions"
  std::string what;               // in the API server's words: Invalid value: "x": must be true or false
};
std::vector<QueuedProblem> problems_of(const QueuedWork& work);

// `metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: Invalid value: "x": must be a whole number above 0`.
std::string to_string(const QueuedProblem& problem);

}  // namespace berth::api
