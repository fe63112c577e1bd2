// OfflineRun: what `berth simulate` and `berth why -f` share: files in, a simulation that has run to its end out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenario/simulation.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace berth::apps {

struct OfflineInput {
  std::vector<std::string> files;        // or folders, or "-"
  std::string config_file;               // a BerthConfiguration; empty: defaults
  std::vector<std::string> weights;      // "pack=5", over those of the file
  bool set_packing = false;              // setPacking.enabled, whatever the file says
  std::vector<std::string> wrong_flags;  // what the verb found wrong with its other flags, told with the rest
  bool forecasts = false;                // there will be a report with them
  size_t list_feasible = 0;              // note for each pod so many of the nodes that fitted it, and how many did
};

// --filename, the same for every verb that reads manifests. `input` must outlive the parse.
CLI::Option* add_files_option(CLI::App& command, OfflineInput& input);
// --config, the same for every verb that runs offline. `input` must outlive the parse.
CLI::Option* add_config_option(CLI::App& command, OfflineInput& input);

// Reads the files, simulates them to the end and returns the cluster. When anything is wrong with the input, every
// problem is written to standard error and nothing is returned. Notes go to standard error too, and how
// far it is where that takes long.
std::unique_ptr<scenario::Simulation> run_offline(const OfflineInput& input);

}  // namespace berth::apps
