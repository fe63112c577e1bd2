# Files whose unnamed namespaces define names that other files of their layer define too: those of one number share units, with
# their own layer's only. A file that does not compile in a unit for this reason takes other names, or a line here.
macro(berth_apart number)
  foreach(path ${ARGN})
    if(NOT EXISTS ${CMAKE_SOURCE_DIR}/src/${path})
      message(FATAL_ERROR "cmake/apart.cmake names src/${path}, which is not there")
    endif()
    set(BERTH_APART_${path} ${number})
  endforeach()
endmacro()

berth_apart(1
  api/bad_manifests_test.cc
  api/kueue.cc
  api/match_label_keys.cc
  api/protobuf_tables.cc
  api/requests.cc
  api/runtime_estimate_test.cc
  api/victim_terms.cc
  apps/scheduler/authorizer.cc
  apps/scheduler/log_test.cc
  apps/scheduler/status_writer.cc
  apps/scheduler/throttle.cc
  apps/scheduler/work_queues.cc
  apps/scheduler_command.cc
  apps/webhook/metrics.cc
  apps/webhook/server.cc
  apps/webhook/watch_test.cc
  base/time.cc
  bridge/gpus.cc
  bridge/mig_desired.cc
  bridge/topology_test.cc
  engine/replica_shares.cc
  engine/request_mix_test.cc
  engine/volume_state.cc
  io/proxy_test.cc
  model/taint_test.cc
  packing/berth_test.cc
  packing/fleet_test.cc
  packing/mig_geometry_test.cc
  packing/model_scarcity.cc
  policy/forecast_test.cc
  policy/gpu_share_test.cc
  policy/node_resources.cc
  policy/pod_topology_spread.cc
  policy/topology.cc
  queueing/queue_status.cc
  quota/admission_test.cc
  scenario/lost_places_test.cc
  scenario/manifests.cc
  scenario/mixed_history_property_test.cc
  scenario/queued_workloads_property_test.cc
  scenario/queueing_case.cc
  webhook/convert_test.cc
  webhook/validate.cc
)

berth_apart(2
  api/kueue_checks.cc
  api/misplaced_test.cc
  api/requests_test.cc
  api/resources.cc
  api/server_edges_test.cc
  api/volumes.cc
  apps/scheduler/storage_watch.cc
  apps/simulate_command.cc
  engine/set_search_test.cc
  packing/fragment_test.cc
  packing/mig_placement_test.cc
  packing/packing_bound_test.cc
  packing/share_worth.cc
  policy/placements_test.cc
  policy/volume_binding.cc
  policy/volume_limits.cc
  quota/local_usage_test.cc
  scenario/manifests_test.cc
  scenario/restored_workloads_test.cc
  scenario/shared_quota_property_test.cc
  scenario/simulation_resumed.cc
  scenario/slices_property_test.cc
)

berth_apart(3
  apps/webhook_command.cc
  engine/trial_test.cc
  policy/policies_test.cc
  quota/quota_tree_test.cc
  quota/spending_test.cc
  scenario/scenario_test.cc
  scenario/trace_test.cc
)

berth_apart(4
  apps/why_command.cc
  policy/registry_test.cc
)

berth_apart(5
  policy/reservations_test.cc
)
