// The annotation by which a Job that is let in with fewer pods than it asks for is to need as few completions, too.
// Source: Kueue's Job integration, https://kueue.sigs.k8s.io/docs/tasks/run/jobs/#partial-admission.
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

namespace berth::api {

inline constexpr std::string_view kCompletionsFollowAnnotation = "kueue.x-k8s.io/job-completions-equal-parallelism";

// What its value says, as Go's strconv.ParseBool reads it; none: neither yes nor no.
inline std::optional<bool> completions_follow(std::string_view value) {
  static constexpr std::string_view kYes[] = {"1", "t", "T", "true", "TRUE", "True"},
                                    kNo[] = {"0", "f", "F", "false", "FALSE", "False"};
  if (std::ranges::find(kYes, value) != std::end(kYes)) return true;
  if (std::ranges::find(kNo, value) != std::end(kNo)) return false;
  return std::nullopt;
}

}  // namespace berth::api
