// Scenario: a story about a cluster, told in YAML, with what must come of it.
//
//   # A pod waits until a node with room for it joins.
//   policies: {scores: {pack: 5}}                     # as in berth.yaml; may be left out
//   setPacking: {enabled: true}                       # the same
//   reservations: {after: 5m}                         # the same
//   cluster: {nodes: [{like: a100-8, name: full, gpus: 0}]}
//   steps:
//     - submit: {apiVersion: v1, kind: Pod, …}     # or a list, a file beside the scenario, or text with "---" in it
//     - expect: {pending: 1, reasons: {train: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}}
//     - node_added: {like: a100-8, name: new}
//     - expect: {placements: {train: new}}
//
// docs/scenarios.md lists every step and expectation. Each scenario is run straight, with the delivery of each step's
// events shuffled, and by replaying its recorded calls into a fresh engine; all must decide the same.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "scenario/lined_value.h"

namespace berth::scenario {

// Node manifests by shape name ("a100-8"), as LinedValues; see scenarios/shapes.yaml.
using Shapes = std::vector<std::pair<std::string, LinedValue>>;
Result<Shapes> parse_shapes(const std::string& text, const std::string& file);

struct Scenario {
  std::string file;
  LinedValue root;
  engine::PolicySet policies = {};
  engine::EngineOptions engine = {};
  // Reads a file that stands beside the scenario.
  std::function<Result<std::string>(const std::string& name)> read_beside = {};
};
Result<Scenario> parse_scenario(const std::string& text, const std::string& file);

// Something that did not come out as told. With `expected` and `actual` set it is one value on one line of the
// scenario.
struct Mismatch {
  int line = 0;
  std::string sentence;
  std::string expected, actual;
};

// Runs the scenario in every mode. Empty when it holds.
std::vector<Mismatch> run_scenario(const Scenario& scenario, const Shapes& shapes);

// `text` with each mismatch's expected value replaced by the actual one on its line; `left` counts those that could not
// be, as those that stand on their line several times.
std::string with_actual_values(const std::string& text, const std::vector<Mismatch>& mismatches, size_t& left);

}  // namespace berth::scenario
