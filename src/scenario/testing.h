// For tests of whole clusters: manifests as text become a Simulation.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policy/registry.h"
#include "scenario/simulation.h"

namespace berth::scenario::testing {

// With everything submitted, and not run yet; under the default policies. Problems of the text fail the test.
inline std::unique_ptr<Simulation> prepare(const std::string& text, SimulationOptions options) {
  PriorityClasses classes;
  api::Problems problems;
  std::vector<std::string> notes;
  auto manifests = read_manifests({{"a.yaml", text}}, classes, problems, notes);
  EXPECT_THAT(problems, ::testing::IsEmpty()) << (problems.empty() ? "" : api::to_string(problems.front()));
  options.policies = policy::default_policies();
  auto cluster = std::make_unique<Simulation>(std::move(options));
  EXPECT_TRUE(cluster->submit(std::move(manifests)));
  return cluster;
}

}  // namespace berth::scenario::testing
