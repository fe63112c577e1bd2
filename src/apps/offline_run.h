// OfflineRun: what `berth simulate` and `berth why -f` share: files in, a simulation that has run to its end out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenario/simulation.h"

namespace berth::apps {

// Reads the files, simulates them to the end and returns the cluster. When anything is wrong with the input, every
// problem is written to standard error and nothing is returned. Notes go to standard error too.
std::unique_ptr<scenario::Simulation> run_offline(const std::vector<std::string>& paths,
                                                  const std::vector<std::string>& weights);

}  // namespace berth::apps
