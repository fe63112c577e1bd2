// How fast watch events and manifests are decoded: pods per second on one core.
//
//   decode_bench [SECONDS]
// The event is one as a busy API server sends it: managedFields, volumes, status, about 5 KB.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "api/decode.h"
#include "bench/busy_pod.h"

namespace {

using Seconds = std::chrono::duration<double>;

// Calls `work` for `budget_s` and returns calls per second.
template <typename Work>
double rate(double budget_s, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  int64_t calls = 0;
  double elapsed = 0;
  while (elapsed < budget_s) {
    for (int i = 0; i < 100; ++i) work();
    calls += 100;
    elapsed = Seconds(std::chrono::steady_clock::now() - start).count();
  }
  return static_cast<double>(calls) / elapsed;
}

}  // namespace

int main(int argc, char** argv) {
  const double budget_s = argc > 1 ? std::atof(argv[1]) : 1.0;
  const std::string event = berth::bench::busy_pod_json();
  size_t decoded = 0;
  const double events = rate(budget_s, [&] {
    const auto result = berth::api::decode_pod(event);
    decoded += result ? 1 : 0;
  });
  std::printf("pods from JSON %9.0f pods/s  (%zu bytes each, %zu decoded)\n", events, event.size(), decoded);

  const std::string manifest =
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {app: x}\nspec:\n  containers:\n  - name: c\n    "
      "resources:\n"
      "      limits:\n        cpu: 4\n        nvidia.com/gpu: 1\n  tolerations:\n  - key: gpu\n    operator: "
      "Exists\n---\n";
  std::string file;
  for (int i = 0; i < 100; ++i) file += manifest;
  size_t objects = 0;
  const double files = rate(budget_s, [&] {
    berth::api::Problems problems;
    for (const auto& document : berth::api::read_documents(file, "f.yaml", problems))
      objects += decode(document, problems) ? 1 : 0;
  });
  std::printf("YAML manifests %9.0f pods/s  (%zu bytes each, %zu decoded)\n", files * 100, manifest.size(), objects);
  return 0;
}
