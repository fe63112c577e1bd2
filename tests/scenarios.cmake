# Behaviour as data: every scenarios/<feature>/<name>.yaml is the test scenario.<feature>/<name>. A file that another one
# submits stands in a folder named manifests.
file(GLOB_RECURSE scenarios CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/scenarios ${CMAKE_SOURCE_DIR}/scenarios/*.yaml)
list(FILTER scenarios EXCLUDE REGEX "^shapes\\.yaml$|/manifests/")
foreach(scenario ${scenarios})
  string(REGEX REPLACE "\\.yaml$" "" name ${scenario})
  add_test(NAME ${BERTH_TEST_PREFIX}scenario.${name} COMMAND berth-scenario scenarios/${scenario} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${BERTH_TEST_PREFIX}scenario.${name} PROPERTIES LABELS scenario TIMEOUT 60)
endforeach()
