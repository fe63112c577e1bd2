// berth-scenario: runs scenario files as tests. `berth-scenario [--update] [--shapes FILE] FILE…`; exit 0 when all
// hold.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "apps/files.h"
#include "base/printable.h"
#include "scenario/scenario.h"

namespace berth::apps {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownBytesMax = 4096;  // of one sentence

// scenarios/shapes.yaml, found from the scenario upwards.
std::string default_shapes(const std::string& scenario) {
  for (fs::path folder = fs::absolute(scenario).parent_path();; folder = folder.parent_path()) {
    if (fs::exists(folder / "shapes.yaml")) return folder / "shapes.yaml";
    if (!folder.has_relative_path()) return "shapes.yaml";
  }
}

Result<std::vector<scenario::Mismatch>> play(const std::string& path, const std::string& shapes_path,
                                             std::string& text) {
  BERTH_TRY(read, read_file(path));
  text = read;
  BERTH_TRY(parsed, scenario::parse_scenario(text, path));
  const std::string shapes_file = shapes_path.empty() ? default_shapes(path) : shapes_path;
  const auto shapes_text = read_file(shapes_file);
  if (!shapes_text)
    return fail(shapes_text.error().code, fmt::format("{} with the shapes of nodes: {}; or say --shapes FILE",
                                                      shapes_file, shapes_text.error().message));
  BERTH_TRY(shapes, scenario::parse_shapes(*shapes_text, shapes_file));
  parsed.read_beside = [folder = fs::path(path).parent_path()](const std::string& name) {
    return read_file(folder / name);
  };
  return scenario::run_scenario(parsed, shapes);
}

bool run(const std::string& path, const std::string& shapes_path, bool update) {
  std::string text;
  const auto mismatches = play(path, shapes_path, text);
  const std::string shown = printable(path);
  if (!mismatches) {
    std::cerr << shown << ": " << printable(mismatches.error().message, kShownBytesMax) << "\n";
    return false;
  }
  if (mismatches->empty()) return true;
  if (update) {
    size_t left = 0;
    const std::string updated = scenario::with_actual_values(text, *mismatches, left);
    std::ofstream(path, std::ios::binary) << updated;
    std::cerr << shown << ": " << mismatches->size() - left << " expectations rewritten, " << left << " left\n";
    if (left == 0) return true;
  }
  for (const scenario::Mismatch& mismatch : *mismatches) {
    std::cerr << shown << ":" << mismatch.line << ": " << printable(mismatch.sentence, kShownBytesMax) << "\n";
  }
  return false;
}

}  // namespace
}  // namespace berth::apps

int main(int argc, char** argv) {
  constexpr const char* kUsage =
      "usage: berth-scenario [--update] [--shapes FILE] FILE...\n"
      "Plays scenarios and says what did not come as expected; exit 0 when everything did, else 1.\n"
      "  --update       writes what came into the files, in place of what was expected\n"
      "  --shapes FILE  the nodes that scenarios name; by default the shapes.yaml above each\n";
  std::vector<std::string> files;
  std::string shapes;
  bool update = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--update") update = true;
    else if (argument == "--shapes" && i + 1 < argc) shapes = argv[++i];
    else if (argument == "--help" || argument == "-h") {
      std::cout << kUsage;
      return 0;
    } else if (argument.starts_with('-')) {
      std::cerr << "berth-scenario: no option '" << berth::printable(argument) << "', or its value is missing\n"
                << kUsage;
      return 2;
    } else files.push_back(argument);
  }
  if (files.empty()) {
    std::cerr << kUsage;
    return 2;
  }
  bool good = true;
  for (const std::string& file : files) good &= berth::apps::run(file, shapes, update);
  return good ? 0 : 1;
}
