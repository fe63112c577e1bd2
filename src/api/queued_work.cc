#include "api/queued_work.h"

#include <fmt/format.h>

#include <charconv>

#include "api/job_completions.h"
#include "api/kueue_names.h"
#include "api/names.h"
#include "base/printable.h"

namespace berth::api {
namespace {

constexpr std::string_view kFollow = kCompletionsFollowAnnotation;

// 0: it is no whole number above 0.
int32_t positive(const std::string& text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0 ? number : 0;
}

std::string is_wrong(const std::string& value, const char* why) { return invalid_value(printable(value), why); }

void check_completions(const QueuedWork& work, std::vector<QueuedProblem>& out) {
  if (!work.completions_follow) return;
  const std::optional<bool> follow = completions_follow(*work.completions_follow);
  if (follow == false) return;
  if (!follow) {
    out.push_back({"annotations", kFollow, "", is_wrong(*work.completions_follow, "must be true or false")});
    return;
  }
  const std::string when = append_key("metadata.annotations", kFollow) + " is true";
  if (!work.indexed)
    out.push_back({"annotations", kFollow, "spec.completionMode",
                   "Invalid value: \"NonIndexed\": should not be NonIndexed when " + when});
  if (work.completions != work.parallelism)
    out.push_back(
        {"annotations", kFollow, "spec.completions", "Invalid value: should be equal to parallelism when " + when});
}

}  // namespace

std::vector<QueuedProblem> problems_of(const QueuedWork& work) {
  std::vector<QueuedProblem> out;
  if (work.max_execution && positive(*work.max_execution) == 0)
    out.push_back({"labels", kMaxExecutionLabel, "", is_wrong(*work.max_execution, "must be a whole number above 0")});
  if (work.min_parallelism) {
    const int64_t least = positive(*work.min_parallelism), most = work.parallelism - (work.may_be_reduced ? 0 : 1);
    if (least == 0 || least > most)
      out.push_back({"annotations", kMinParallelismAnnotation, "",
                     is_wrong(*work.min_parallelism, "must be a whole number above 0 and below spec.parallelism")});
  }
  check_completions(work, out);
  return out;
}

std::string to_string(const QueuedProblem& problem) {
  const std::string at = append_key(fmt::format("metadata.{}", problem.section), problem.key);
  return fmt::format("{}: {}", problem.field.empty() ? at : problem.field, problem.what);
}

}  // namespace berth::api
