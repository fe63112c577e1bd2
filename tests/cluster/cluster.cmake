# Suites against a real kube-apiserver: every tests/cluster/*_test.py is a test of its name. Each reports *skipped* where
# the test servers are not built (tools/test_servers.sh); none passes without them.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
file(GLOB suites CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.py)
foreach(suite ${suites})
  get_filename_component(name ${suite} NAME_WE)
  add_test(NAME cluster.${name} COMMAND ${Python3_EXECUTABLE} ${suite})
  set_tests_properties(cluster.${name} PROPERTIES
    LABELS cluster
    SKIP_RETURN_CODE 77
    TIMEOUT 600
    ENVIRONMENT "BERTH_BIN=${CMAKE_BINARY_DIR}/bin"
    # A control plane keeps two cores busy; several at once would time out on small machines.
    RESOURCE_LOCK control_plane)
endforeach()
