// Queueing cases: Kueue's objects and what happens to them, step by step, played through Berth's admission.
//
// A case is a YAML document: `title`, `config` (of Kueue's Configuration: fairSharing is read), `objects` (manifests of
// kueue.x-k8s.io) and `steps`. A step has any of `create` (manifests), `finish`, `delete` (names of workloads) and
// `patch` (kind, name, and a merge patch of spec), played in this order; then everything settles. There are no nodes:
// whatever quota lets in has a place. Evicted workloads let go at once.
#pragma once

#include <string>

#include "base/result.h"

namespace berth::scenario {

// What came of it, as JSON: for each step its events, and the workloads and ClusterQueues once settled. kInvalidInput,
// with file and line, for a document that is no such case.
Result<std::string> play_queueing_case(const std::string& text, const std::string& file);

}  // namespace berth::scenario
