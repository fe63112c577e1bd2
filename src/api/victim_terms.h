// What work and queues say of being taken from: how often work saves its state, and when a queue's workloads may be
// evicted for others, and in which order.
//
// Of Jobs and Workloads, by their tenants; a value that is no such thing counts as absent:
//   berth.dev/checkpoint-interval: 30m         it saves its state so often
//   berth.dev/last-checkpoint: 2026-01-02T…Z   it saved its state then; the job itself keeps it up to date
// Of ClusterQueues, by their administrators:
//   berth.dev/minimum-runtime: 15m             nobody is taken from before it has run so long
//   berth.dev/victim-order: least-lost-work    for its workloads those go first who lose the least
//   berth.dev/lost-work-max: 1h                no more than that counts as lost, whatever is declared
// Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "api/meta.h"
#include "model/queues.h"

namespace berth::api {

inline constexpr std::string_view kCheckpointIntervalAnnotation = "berth.dev/checkpoint-interval";
inline constexpr std::string_view kLastCheckpointAnnotation = "berth.dev/last-checkpoint";
inline constexpr std::string_view kMinimumRuntimeAnnotation = "berth.dev/minimum-runtime";
inline constexpr std::string_view kVictimOrderAnnotation = "berth.dev/victim-order";
inline constexpr std::string_view kLostWorkMaxAnnotation = "berth.dev/lost-work-max";

// What is wrong with the value of one of these annotations, and the way out; empty: nothing, or it is none of them.
std::string victim_annotation_problem(std::string_view key, const std::string& value);

// `last` is the wall clock's time.
model::Checkpoints checkpoints_of(const ObjectMeta& metadata);

// Annotations with a problem keep what holds by default.
model::VictimTerms victim_terms_of(const ObjectMeta& metadata);

}  // namespace berth::api
