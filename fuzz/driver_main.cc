// Runs a fuzz target without libFuzzer: over the files of its corpus, then over seeded mutations of them.
//
//   TARGET DIRECTORY [MUTATIONS [SEED]]
// The same seed gives the same inputs; the input that ended the run badly is left in TARGET.crash.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<std::string> read_corpus(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

std::string mutate(std::string input, const std::vector<std::string>& corpus, berth::Rng& rng) {
  for (uint64_t edits = 1 + rng.below(4); edits > 0; --edits) {
    const size_t at = rng.below(input.size() + 1);
    const size_t length = std::min<size_t>(rng.below(20), input.size() - at);
    const std::string& other = corpus[rng.below(corpus.size())];
    const size_t from = rng.below(other.size() + 1);
    switch (rng.below(5)) {
      case 0: input.erase(at, length); break;
      case 1: input.insert(at, other.substr(from, rng.below(40))); break;
      case 2: input.insert(at, 1, static_cast<char>(rng.below(256))); break;
      case 3: input.insert(at, input.substr(at, length)); break;
      default:
        if (at < input.size()) input[at] = "{}[]:,-&*!|>'\"\n #%0e~<"[rng.below(22)];
    }
  }
  return input;
}

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: %s DIRECTORY [MUTATIONS [SEED]]\n", argv[0]), 2;
  const std::vector<std::string> corpus = read_corpus(argv[1]);
  if (corpus.empty()) return std::fprintf(stderr, "%s: no corpus there\n", argv[1]), 2;
  for (const std::string& input : corpus) run(input);
  const uint64_t mutations = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  berth::Rng rng(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  const std::string crash = std::string(argv[0]) + ".crash";
  for (uint64_t i = 0; i < mutations; ++i) {
    const std::string input = mutate(corpus[rng.below(corpus.size())], corpus, rng);
    std::ofstream(crash, std::ios::binary | std::ios::trunc) << input;
    run(input);
  }
  if (mutations > 0) std::filesystem::remove(crash);
  std::printf("%zu inputs and %llu mutations of them passed\n", corpus.size(),
              static_cast<unsigned long long>(mutations));
  return 0;
}
