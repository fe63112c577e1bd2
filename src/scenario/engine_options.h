// Options of the engine as berth.yaml has them, which scenarios may set, too.
//
//   setPacking: {enabled: true, headBound: 10m, maxWork: 100000}
//   reservations: {enabled: true, after: 10m, perQueue: 1}
//   waitForPodsReady: {timeout: 30m, requeuingStrategy: {backoffLimitCount: 5}}
//   fairSharing: {preemptionStrategies: [LessThanInitialShare]}
//   admissionFairSharing: {usageHalfLifeTime: 168h}
#pragma once

#include "api/reader.h"
#include "engine/set_search.h"

namespace berth::scenario {

// A duration longer than 0, as a text with a unit: "90m".
void read_duration(const api::Reader& reader, Duration& out);

// {enabled, headBound, maxWork}; what is not named keeps its value.
void read_set_packing(const api::Reader& reader, engine::SetPackingOptions& out);
// {enabled, after, perQueue}
void read_reservations(const api::Reader& reader, engine::ReservationOptions& out);
// {enabled, timeout, recoveryTimeout, blockAdmission, requeuingStrategy}; to name any turns it on.
void read_pods_ready(const api::Reader& reader, quota::WaitForPodsReady& out);
// {enable, preemptionStrategies}; to name any turns it on, unless `enable` is false.
void read_fair_sharing(const api::Reader& reader, std::optional<quota::FairRules>& out);
// {usageHalfLifeTime, usageSamplingInterval, resourceWeights}
void read_usage(const api::Reader& reader, quota::AdmissionFairSharing& out);

}  // namespace berth::scenario
