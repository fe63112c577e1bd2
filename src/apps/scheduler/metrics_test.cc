#include "apps/scheduler/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/fragmentation.h"

namespace berth::apps {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Metrics, CountersHaveTheirSeriesFromTheStart) {
  const std::string text = Metrics().text();
  for (const char* line : {
           "berth_scheduling_outcomes_total{result=\"error\"} 0",
           "berth_scheduling_outcomes_total{result=\"scheduled\"} 0",
           "berth_scheduling_outcomes_total{result=\"unschedulable\"} 0",
           "berth_pod_scheduling_duration_seconds_count 0",
           "berth_binds_throttled_total 0",
           "berth_owner_turns_over_max_total{list=\"no\"} 0",
           "berth_owner_turns_over_max_total{list=\"yes\"} 0",
           "berth_binds_total{result=\"bound\"} 0",
           "berth_binds_total{result=\"elsewhere\"} 0",
           "berth_binds_total{result=\"failed\"} 0",
           "berth_binds_total{result=\"gone\"} 0",
           "berth_binds_total{result=\"unknown\"} 0",
           "berth_preemptions_total 0",
           "berth_reserved_pods 0",
           "berth_reserved_workloads 0",
           "berth_reservations_total 0",
           "scheduler_preemption_victims_count 0",
           "berth_evictions_total{result=\"evicted\"} 0",
           "berth_evictions_total{result=\"gone\"} 0",
           "berth_evictions_total{result=\"refused\"} 0",
           "berth_evictions_total{result=\"withdrawn\"} 0",
           "berth_status_patches_total{result=\"failed\"} 0",
           "berth_status_patches_total{result=\"ok\"} 0",
           "berth_quarantined_objects_total{kind=\"Namespace\"} 0",
           "berth_quarantined_objects_total{kind=\"Node\"} 0",
           "berth_quarantined_objects_total{kind=\"Pod\"} 0",
           "berth_quarantined_objects_total{kind=\"PersistentVolumeClaim\"} 0",
           "berth_events_total{result=\"aggregated\"} 0",
           "berth_events_total{result=\"created\"} 0",
           "berth_events_total{result=\"dropped\"} 0",
           "berth_watch_total{resource=\"csinodes\",what=\"lists\"} 0",
           "berth_watch_total{resource=\"namespaces\",what=\"gone\"} 0",
           "berth_watch_total{resource=\"nodes\",what=\"failures\"} 0",
           "berth_watch_total{resource=\"pods\",what=\"lists\"} 0",
           "berth_watch_total{resource=\"pods\",what=\"watches\"} 0",
       })
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(Metrics, TurnsBeyondTheirMaximumAreCountedThoseWithAListApart) {
  Metrics metrics;
  const Duration longest = Duration::millis(100);
  metrics.owner_turn(Duration::millis(100), longest, 2000, false);
  metrics.owner_turn(Duration::millis(101), longest, 10, false);
  metrics.owner_turn(Duration::millis(900), longest, 1, true);
  metrics.owner_turn(Duration::millis(20), longest, 1, false);
  metrics.owner_backlog(3);
  const std::string text = metrics.text();
  for (const char* line : {
           "berth_owner_turn_duration_seconds_count 4",
           "berth_owner_turn_duration_seconds_bucket{le=\"0.1\"} 2",
           "berth_owner_turn_updates_count 3",
           "berth_owner_turn_updates_bucket{le=\"2000\"} 3",
           "berth_owner_turn_max_seconds 0.1",
           "berth_owner_turn_longest_seconds 0.9",
           "berth_owner_turns_over_max_total{list=\"no\"} 1",
           "berth_owner_turns_over_max_total{list=\"yes\"} 1",
           "berth_owner_backlog 3",
       })
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(Metrics, FragmentationIsWhatWasSaidLast) {
  Metrics metrics;
  engine::ResourceRoom slices;
  slices.resource = "nvidia.com/mig-1g.5gb";
  slices.shapes = {{.size = 1, .fit = 3, .fit_if_cut = 14, .stranded = {0, 2, 0, 0, 0}}};
  metrics.fragmentation({slices});
  for (const char* line : {
           "berth_fragmentation_requests{kind=\"device\",resource=\"nvidia.com/mig-1g.5gb\",size=\"1\"} 3",
           "berth_fragmentation_requests_if_cut{kind=\"device\",resource=\"nvidia.com/mig-1g.5gb\",size=\"1\"} 14",
           "berth_fragmentation_stranded{by=\"cpu\",kind=\"device\",resource=\"nvidia.com/mig-1g.5gb\",size=\"1\"} 2",
       })
    EXPECT_THAT(metrics.text(), HasSubstr(line));
  slices.shapes[0].fit_if_cut.reset();
  metrics.fragmentation({slices});
  EXPECT_THAT(metrics.text(), Not(HasSubstr("_if_cut{")));
  EXPECT_THAT(metrics.text(), HasSubstr("berth_fragmentation_requests{"));
  metrics.fragmentation({});
  EXPECT_THAT(metrics.text(), Not(HasSubstr("mig-1g.5gb")));
}

TEST(Metrics, InstancesOfMigAreNoGpus) {
  Metrics metrics;
  metrics.gpus({.allocatable = 8, .used = 5, .mig_allocatable = 14, .mig_used = 3});
  for (const char* line : {"berth_gpus{state=\"allocatable\"} 8", "berth_gpus{state=\"used\"} 5",
                           "berth_mig_instances{state=\"allocatable\"} 14", "berth_mig_instances{state=\"used\"} 3"})
    EXPECT_THAT(metrics.text(), HasSubstr(line));
}

// A new term begins with new reflectors and a new event recorder, which count from 0 again.
TEST(Metrics, WhatASessionCountedStaysCountedWhenTheNextBegins) {
  Metrics metrics;
  metrics.events({.created = 3, .aggregated = 2, .dropped = 1});
  metrics.watch("pods", {.lists = 1, .watches = 4, .failures = 2});
  metrics.session_began();
  metrics.events({.created = 2, .aggregated = 0, .dropped = 0});
  metrics.events({.created = 5, .aggregated = 1, .dropped = 0});
  metrics.watch("pods", {.lists = 1, .watches = 1, .gone = 1});
  const std::string text = metrics.text();
  for (const char* line : {
           "berth_events_total{result=\"created\"} 8",
           "berth_events_total{result=\"aggregated\"} 3",
           "berth_events_total{result=\"dropped\"} 1",
           "berth_watch_total{resource=\"pods\",what=\"lists\"} 2",
           "berth_watch_total{resource=\"pods\",what=\"watches\"} 5",
           "berth_watch_total{resource=\"pods\",what=\"gone\"} 1",
           "berth_watch_total{resource=\"pods\",what=\"failures\"} 2",
           "# TYPE berth_events_total counter",
       })
    EXPECT_THAT(text, HasSubstr(line));
}

}  // namespace
}  // namespace berth::apps
