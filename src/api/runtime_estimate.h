// How long work runs at most, as its own object declares it.
//
// The first of these that holds: the annotation berth.dev/runtime-estimate, Kueue's label for the maximum execution
// time, activeDeadlineSeconds. A value that is no such thing counts as absent, for that object alone. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/meta.h"
#include "base/time.h"

namespace berth::api {

// Of pods, templates of pods, Jobs and Workloads: a duration as Go writes it, "90m". The longest that counts is ten
// years.
inline constexpr std::string_view kRuntimeEstimateAnnotation = "berth.dev/runtime-estimate";
inline constexpr Duration kRuntimeMax = Duration::seconds(int64_t{10} * 365 * 24 * 3600);

// What is wrong with the annotation's value, and the way out; empty: nothing.
std::string runtime_estimate_problem(const std::string& value);

// The value of the label kueue.x-k8s.io/max-exec-time-seconds, where it is one.
std::optional<int32_t> max_execution_s(const ObjectMeta& metadata);

// What the object declares; `active_deadline_s` is of its spec.
std::optional<Duration> declared_runtime(const ObjectMeta& metadata, const std::optional<int64_t>& active_deadline_s);

}  // namespace berth::api
