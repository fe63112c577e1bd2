// `berth simulate --trace`: a fleet and a list of pods from CSV files, filled until it overflows; see docs/traces.md.
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace berth::apps {

struct TraceFlags {
  std::string trace;
  std::string nodes;
  std::string pods;
  std::string inflate = "1.3";
  std::string seed = "0";
  std::string policy = "berth";
  std::optional<std::string> batch;
  std::optional<std::string> svg;
};

// --trace, which is returned, and the flags that go with it alone. `flags` must outlive the parse.
CLI::Option* add_trace_options(CLI::App& command, TraceFlags& flags);

// Reads, runs and prints, as a table or JSON; returns the exit code. Everything that is wrong with flags and files is
// told in one run. How far it is goes to standard error, where that takes long.
int run_trace(const TraceFlags& flags, const std::string& format);

}  // namespace berth::apps
