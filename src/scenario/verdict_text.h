// Verdict text: Berth's node-by-node explanation as lines for people, equal nodes grouped.
//
//   2 nodes: gpu-1, gpu-2
//     Insufficient nvidia.com/gpu: asks 8, free 6 of 8, short by 2
#pragma once

#include <string>
#include <vector>

#include "engine/explanation.h"
#include "engine/forecast.h"

namespace berth::scenario {

// The lines, each starting with `indent`; nodes that turn the pod away for exactly the same reasons share a group, the
// largest group first, and a group names at most `names_max` nodes. Empty without nodes.
std::vector<std::string> verdict_lines(const engine::Explanation& explanation, const std::string& indent,
                                       size_t names_max = 4);

// "starts in 20m, at the latest in 1h; 2 of 2 in its way declare a runtime", or that nobody can tell, and why.
std::string forecast_text(const engine::Forecast& forecast);

}  // namespace berth::scenario
