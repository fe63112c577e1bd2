// Policies as berth.yaml has them: scores, prices, pools and queues, read from a file and written to one.
//
//   scores: {cost: 5}
//   prices: {NVIDIA-L4: 0.80, NVIDIA-H100-80GB-HBM3: "4.25"}
//   pools: [{name: batch, nodeSelector: {pool: batch}, scores: {power: 5}}]
//   queues: [{name: ml/training, scores: {pack: 5}}]
//
// The daemon's configuration, the offline commands and scenarios all read them here. What is wrong becomes a problem of
// the reader's document, each with its line.
#pragma once

#include <string>

#include "api/document.h"
#include "api/reader.h"
#include "policy/registry.h"

namespace berth::scenario {

// {policy: weight}.
void read_weights(const api::Reader& reader, policy::Weights& out);
// {GPU model: dollars for a GPU-hour}, to a millionth.
void read_prices(const api::Reader& reader, policy::PolicyOptions& out);
// [{name, nodeSelector: labels that a node of the pool has, scores: {policy: weight}}].
void read_pools(const api::Reader& reader, policy::PolicyOptions& out);
// [{name: LocalQueue or namespace/LocalQueue, scores: {policy: weight}}].
void read_queues(const api::Reader& reader, policy::PolicyOptions& out);
// The object that has these four among its members: what one of them cannot tell.
void check_policies(const api::Reader& reader, const policy::PolicyOptions& options);

// A document with these members and no others.
Result<engine::PolicySet> read_policies(const api::Document& document);

}  // namespace berth::scenario
