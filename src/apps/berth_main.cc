// berth: one program, one verb for each thing it does. Each verb is a file, src/apps/<verb>_command.cc.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "apps/exit_code.h"
#include "apps/policies_command.h"
#include "apps/scheduler_command.h"
#include "apps/simulate_command.h"
#include "apps/version_command.h"
#include "apps/why_command.h"
#include "base/printable.h"

namespace berth::apps {
namespace {

int run(int argc, char** argv) {
  int exit_code = kExitFailure;
  CLI::App app("Berth decides which GPU work runs where, and when, on Kubernetes.", "berth");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return "error: " + printable(error.what()) + "; see `" + failed->get_display_name() + " --help`\n";
  });
  add_scheduler_command(app, exit_code);
  add_simulate_command(app, exit_code);
  add_why_command(app, exit_code);
  add_config_command(app, exit_code);
  add_policies_command(app, exit_code);
  add_version_command(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? kExitOk : kExitUsage; }
  return exit_code;
}

}  // namespace
}  // namespace berth::apps

int main(int argc, char** argv) {
  try {
    return berth::apps::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << berth::printable(error.what()) << "\n";
    return berth::apps::kExitFailure;
  }
}
