#include "apps/version_command.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "apps/exit_code.h"
#include "base/version.h"

namespace berth::apps {

void add_version_command(CLI::App& app, int& exit_code) {
  app.add_subcommand("version", "Print the version")->callback([&exit_code] {
    std::cout << "berth " << version() << "\n";
    exit_code = kExitOk;
  });
}

}  // namespace berth::apps
