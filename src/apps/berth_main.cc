// berth: one program, one verb for each thing it does. Each verb is a file, src/apps/<verb>_command.cc.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>

#include "api/names.h"
#include "apps/exit_code.h"
#include "apps/frag_command.h"
#include "apps/policies_command.h"
#include "apps/scheduler_command.h"
#include "apps/simulate_command.h"
#include "apps/version_command.h"
#include "apps/webhook_command.h"
#include "apps/why_command.h"
#include "base/printable.h"
#include "base/version.h"

namespace berth::apps {
namespace {

// What is wrong with the first argument, which must be a verb or an option; empty when nothing is.
std::string wrong_verb(const CLI::App& app, int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word.starts_with('-')) return "";
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    verbs.push_back(verb->get_name());
  if (std::find(verbs.begin(), verbs.end(), word) != verbs.end()) return "";
  const std::string all = fmt::format("{}", fmt::join(verbs, ", "));
  if (argc < 2) return "say what to do, one of: " + all;
  const std::string_view near = api::closest(word, {verbs.begin(), verbs.end()});
  const std::string hint = near.empty() ? "it must be one of: " + all : fmt::format("did you mean {}?", near);
  return fmt::format("there is no command '{}'; {}", word, hint);
}

// The flags that nobody knows: one of them may be what is said to be missing. Empty where there are none.
std::string wrong_flags(const CLI::App& app) {
  std::vector<std::string> wrong;
  for (const CLI::App* verb : app.get_subcommands())
    for (const std::string& word : verb->remaining())
      if (word.starts_with('-')) wrong.push_back(word);
  if (wrong.empty()) return "";
  return fmt::format("The following argument{} not expected: {}", wrong.size() == 1 ? " was" : "s were",
                     fmt::join(wrong, " "));
}

int usage_error(const CLI::App& app, const std::string& what) {
  std::string help = app.get_name();
  for (const CLI::App* verb : app.get_subcommands()) help += " " + verb->get_name();
  std::cerr << "error: " << printable(what, 400) << (what.ends_with('?') ? " See" : "; see") << " `" << help
            << " --help`\n";
  return kExitUsage;
}

int run(int argc, char** argv) {
  int exit_code = kExitUsage;
  CLI::App app("Berth decides which GPU work runs where, and when, on Kubernetes.", "berth");
  app.set_version_flag("--version", "berth " + std::string(version()), "Print the version");
  add_scheduler_command(app, exit_code);
  add_simulate_command(app, exit_code);
  add_why_command(app, exit_code);
  add_frag_command(app, exit_code);
  add_webhook_command(app, exit_code);
  add_config_command(app, exit_code);
  add_policies_command(app, exit_code);
  add_version_command(app, exit_code);
  if (const std::string wrong = wrong_verb(app, argc, argv); !wrong.empty()) return usage_error(app, wrong);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::string wrong = wrong_flags(app);
    return usage_error(app, wrong.empty() ? error.what() : wrong);
  }
  return exit_code;
}

}  // namespace
}  // namespace berth::apps

int main(int argc, char** argv) {
  try {
    const int exit_code = berth::apps::run(argc, argv);
    const bool written = std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (written || exit_code != berth::apps::kExitOk) return exit_code;
    std::cerr << "error: the output could not be written\n";
    return berth::apps::kExitFailure;
  } catch (const std::exception& error) {
    std::cerr << "error: " << berth::printable(error.what()) << "\n";
    return berth::apps::kExitFailure;
  }
}
