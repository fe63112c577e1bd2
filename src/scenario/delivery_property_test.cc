// That decisions do not hang on the order in which events come, over random stories of shares and whole GPUs, in queues
// and outside, with room that is kept. Each is played as a scenario is: straight, shuffled, and replayed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/rng.h"
#include "base/testing.h"
#include "scenario/scenario.h"

namespace berth::scenario {
namespace {

constexpr const char* kShapes = R"(
apiVersion: v1
kind: Node
metadata: {name: two}
status: {capacity: {cpu: "24", memory: 96Gi, pods: "110", nvidia.com/gpu: "2"}}
---
apiVersion: v1
kind: Node
metadata: {name: four}
status: {capacity: {cpu: "24", memory: 96Gi, pods: "110", nvidia.com/gpu: "4"}}
---
apiVersion: v1
kind: Node
metadata:
  name: listed
  annotations:
    berth.dev/devices: |
      {"version": "v1", "devices": [
        {"uuid": "GPU-a", "numaNode": 0}, {"uuid": "GPU-b", "numaNode": 0},
        {"uuid": "GPU-c", "numaNode": 1}, {"uuid": "GPU-d", "numaNode": 1}]}
status: {capacity: {cpu: "24", memory: 96Gi, pods: "110", nvidia.com/gpu: "4"}}
)";

class Story {
 public:
  explicit Story(uint64_t seed) : rng_(seed) {}

  std::string text() {
    std::string out = fmt::format("reservations: {{after: {}}}\ncluster:\n  nodes: [", pick({"5m", "10m"}));
    const uint64_t nodes = 1 + rng_.below(3);
    for (uint64_t i = 0; i < nodes; ++i)
      out += fmt::format("{{like: {}, name: n{}}}, ", pick({"two", "four", "listed"}), i);
    out += "]\n  queues:\n";
    queues_ = 1 + rng_.below(3);
    for (uint64_t i = 0; i < queues_; ++i) out += queue(i);
    out += "steps:\n  - submit:\n";
    for (const int value : {10, 20})
      out += fmt::format(
          "      - {{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: p{0}}}, value: {0}}}\n",
          value);
    out += submit(4 + rng_.below(11));
    for (uint64_t i = 3 + rng_.below(6); i > 0; --i) out += step();
    return out;
  }

 private:
  std::string_view pick(std::initializer_list<std::string_view> of) { return of.begin()[rng_.below(of.size())]; }
  bool one_of(uint64_t count) { return rng_.below(count) == 0; }

  std::string queue(uint64_t number) {
    const bool cohort = one_of(2), preempts = one_of(2);
    std::string out = fmt::format("    q{}: {{quota: {{default: {}}}", number, pick({"2", "8", "100", "100"}));
    if (cohort) out += ", cohort: all";
    if (preempts)
      out += fmt::format(", preemption: {{withinClusterQueue: {}, reclaimWithinCohort: {}}}",
                         pick({"LowerPriority", "LowerOrNewerEqualPriority"}), cohort ? "Any" : "Never");
    return out + (one_of(3) ? ", queueingStrategy: StrictFIFO}\n" : "}\n");
  }

  std::string step() {
    switch (rng_.below(12)) {
      case 0: return fmt::format("  - node_added: {{like: {}, name: x{}}}\n", pick({"two", "listed"}), ++made_);
      case 1: return fmt::format("  - {}: [n0]\n", pick({"cordon", "uncordon"}));
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
      case 7: return fmt::format("  - advance: {}\n", pick({"1m", "4m", "11m", "20m", "1h"}));
      default: return "  - submit:\n" + submit(1 + rng_.below(4));
    }
  }

  std::string submit(uint64_t count) {
    std::string out;
    for (; count > 0; --count) out += one_of(4) ? pod() : job();
    return out;
  }

  std::string labels() {
    return one_of(5) ? "" : fmt::format(", labels: {{kueue.x-k8s.io/queue-name: q{}}}", rng_.below(queues_));
  }

  // Annotations and the spec of a pod.
  std::pair<std::string, std::string> body() {
    std::string annotations, resources;
    if (one_of(4))
      resources = fmt::format(", resources: {{limits: {{nvidia.com/gpu: {}}}}}", pick({"1", "1", "2", "4"}));
    else
      annotations = fmt::format("berth.dev/gpu-fraction: \"{}\"",
                                pick({"0.1", "0.25", "0.3", "0.35", "0.4", "0.5", "0.6", "0.7", "0.9"}));
    if (one_of(3))
      annotations +=
          fmt::format("{}berth.dev/runtime-estimate: {}", annotations.empty() ? "" : ", ", pick({"5m", "12m", "20m"}));
    const std::string priority =
        one_of(3) ? fmt::format(", priorityClassName: {}", pick({"p10", "p20"})) : std::string();
    return {fmt::format("annotations: {{{}}}", annotations),
            fmt::format("{{restartPolicy: Never{}, containers: [{{name: main, image: app{}}}]}}", priority, resources)};
  }

  std::string pod() {
    const auto [annotations, spec] = body();
    return fmt::format("      - {{apiVersion: v1, kind: Pod, metadata: {{name: p{}{}, {}}}, spec: {}}}\n", ++made_,
                       labels(), annotations, spec);
  }

  std::string job() {
    const auto [annotations, spec] = body();
    const uint64_t pods = 1 + rng_.below(4);
    return fmt::format(
        "      - {{apiVersion: batch/v1, kind: Job, metadata: {{name: j{}{}}}, spec: {{parallelism: {}, completions: "
        "{}, "
        "template: {{metadata: {{{}}}, spec: {}}}}}}}\n",
        ++made_, labels(), pods, pods + (one_of(6) ? 2 : 0), annotations, spec);
  }

  Rng rng_;
  uint64_t queues_ = 1;
  int made_ = 0;
};

TEST(Delivery, RandomStoriesAreDecidedAlikeHoweverTheyCome) {
  const auto shapes = parse_shapes(kShapes, "shapes");
  ASSERT_TRUE(shapes) << shapes.error().message;
  const uint64_t last = histories_to_play(300, 20'000);
  for (uint64_t seed = 1; seed <= last; ++seed) {
    const std::string text = Story(seed).text();
    const auto scenario = parse_scenario(text, fmt::format("story {}", seed));
    ASSERT_TRUE(scenario) << scenario.error().message << "\n" << text;
    for (const Mismatch& mismatch : run_scenario(*scenario, *shapes))
      ADD_FAILURE() << "seed " << seed << ": " << mismatch.sentence << "\n" << text;
  }
}

}  // namespace
}  // namespace berth::scenario
