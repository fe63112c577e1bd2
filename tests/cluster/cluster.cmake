# Suites against a real kube-apiserver: every tests/cluster/*_test.py is a test of its name. Each reports *skipped* where
# the test servers are not built (tools/test_servers.sh); none passes without them.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
file(GLOB suites CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.py)
set(lane a)
foreach(suite ${suites})
  get_filename_component(name ${suite} NAME_WE)
  add_test(NAME cluster.${name} COMMAND ${Python3_EXECUTABLE} ${suite})
  set_tests_properties(cluster.${name} PROPERTIES
    LABELS cluster
    SKIP_RETURN_CODE 77
    TIMEOUT 600
    ENVIRONMENT "BERTH_BIN=${CMAKE_BINARY_DIR}/bin"
    # A suite waits three quarters of its time; two control planes at once are what two cores carry. They begin first, so
    # that the others run beside them.
    COST 1000
    RESOURCE_LOCK control_plane_${lane})
  if(lane STREQUAL a)
    set(lane b)
  else()
    set(lane a)
  endif()
endforeach()
set_tests_properties(cluster.differential_test PROPERTIES TIMEOUT 1800)  # BERTH_LONG=1 takes every seed

# The recorded half of the differential suite: kube-scheduler's outcomes against this build, without servers.
set(differential ${CMAKE_CURRENT_LIST_DIR}/differential)
add_test(NAME differential.replay COMMAND ${Python3_EXECUTABLE} ${differential} replay)
add_test(NAME differential.self COMMAND ${Python3_EXECUTABLE} ${differential}/self_test.py)
set_tests_properties(differential.replay differential.self PROPERTIES
  LABELS differential TIMEOUT 600 ENVIRONMENT "BERTH_BIN=${CMAKE_BINARY_DIR}/bin")
set_tests_properties(differential.replay PROPERTIES PROCESSORS 2)
