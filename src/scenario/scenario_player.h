// ScenarioPlayer: one run of one scenario against one simulated cluster.
//
// Each step is a small function in the table of scenario_player.cc; expectations are in scenario_expect.cc. Everything
// that does not come out as told becomes a Mismatch with its line; the run goes on, so that one run shows all of them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scenario/scenario.h"
#include "scenario/simulation.h"

namespace berth::scenario {

class ScenarioPlayer {
 public:
  // `scenario` and `shapes` must outlive the player. A seed other than 0 shuffles delivery.
  ScenarioPlayer(const Scenario& scenario, const Shapes& shapes, uint64_t shuffle_seed);

  std::vector<Mismatch> play();
  const Simulation& cluster() const { return cluster_; }

 private:
  friend struct StepTable;

  void step(const LinedValue& step);
  void build_cluster();

  // Steps.
  void submit(const LinedValue& what);
  void update(const LinedValue& what);
  void add_nodes(const LinedValue& what);
  void add_queues(const LinedValue& what);  // scenario_queues.cc
  void add_job(const LinedValue& what);
  void report_checks(const LinedValue& what);
  void advance(const LinedValue& what);
  void kubelet_rejects(const LinedValue& what);
  void settle_bind(const LinedValue& what);
  void expect(const LinedValue& what);

  // Expectations.
  void expect_count(const LinedValue& value, const std::vector<std::string>& actual, std::string_view what);
  void expect_placements(const LinedValue& value, const Report& report);
  void expect_devices(const LinedValue& value, const Report& report);
  void expect_texts(const LinedValue& value, bool message);
  void expect_details(const LinedValue& value);
  void expect_ended(const LinedValue& value, const Report& report);
  void expect_decided(const LinedValue& value, std::string_view what, engine::DecisionKind kind);
  void expect_nominated(const LinedValue& value);
  void expect_repartitioned(const LinedValue& value);
  void expect_problems(const LinedValue& value);
  void expect_notes(const LinedValue& value);
  void expect_workloads(const LinedValue& value, const Report& report, bool why);
  void expect_queues(const LinedValue& value, const Report& report);
  void expect_refused(const LinedValue& value, const Report& report);
  void expect_forecasts(const LinedValue& value);
  void expect_quota_use(const LinedValue& value, const Report& report);

  std::vector<Manifest> read(const LinedValue& what);
  LinedValue shaped_node(const LinedValue& node, std::string name);
  void require(const Status& status, const LinedValue& where);
  void mismatch(const LinedValue& where, std::string sentence);
  void compare(const LinedValue& expected, std::string_view actual, std::string_view of);
  const PodReport* find(const Report& report, const std::string& name) const;

  const Scenario& scenario_;
  const Shapes& shapes_;
  Simulation cluster_;
  PriorityClasses classes_;
  api::Problems problems_;  // of the last submission
  std::vector<std::string> notes_;
  int problems_line_ = 0;  // of the step that brought them; 0: none, or expected
  size_t heard_ = 0;       // entries of the log that earlier expectations have seen
  size_t cuts_heard_ = 0;  // and so many repartitions
  size_t broken_seen_ = 0;
  std::vector<std::pair<std::string, int>> node_numbers_;       // next number of each shape
  std::set<std::string> flavors_named_, priorities_named_;      // that have been submitted
  std::set<std::pair<std::string, std::string>> queues_named_;  // the same: kind and name of ClusterQueues and Cohorts
  std::vector<Mismatch> mismatches_;
};

}  // namespace berth::scenario
