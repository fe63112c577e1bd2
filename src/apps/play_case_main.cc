// berth-play-case: plays a queueing case offline and prints what came of it as JSON. `berth-play-case FILE`.
#include <iostream>
#include <string>

#include "apps/files.h"
#include "base/printable.h"
#include "scenario/queueing_case.h"

int main(int argc, char** argv) {
  constexpr const char* kUsage =
      "usage: berth-play-case FILE\n"
      "Plays the objects and steps of a queueing case and prints, for each step, events, workloads and queues as "
      "JSON.\n";
  const std::string argument = argc == 2 ? argv[1] : "--help";
  if (argument == "--help" || argument == "-h") {
    (argc == 2 ? std::cout : std::cerr) << kUsage;
    return argc == 2 ? 0 : 2;
  }
  const auto text = berth::apps::read_file(argument);
  const auto played = text ? berth::scenario::play_queueing_case(*text, argument)
                           : berth::Result<std::string>(berth::fail(text.error()));
  if (!played) {
    std::cerr << berth::printable(played.error().message, 4096) << "\n";
    return 1;
  }
  std::cout << *played << "\n";
  return 0;
}
