include(${CMAKE_CURRENT_LIST_DIR}/units.cmake)

# berth_layer(name DEPENDS public libraries PRIVATE private libraries): library berth_<name> from src/<name>/**.cc.
# Tests (*_test.cc) are collected by berth_layer_tests(name), programs (*_main.cc) are left to src/apps.
function(berth_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|_main\\.cc$")
  if(NOT sources)
    add_library(berth_${name} INTERFACE)
    target_include_directories(berth_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(berth_${name} INTERFACE ${ARG_DEPENDS} ${ARG_PRIVATE})
    return()
  endif()
  berth_units(units ${name} ${sources})
  add_library(berth_${name} STATIC ${units})
  target_include_directories(berth_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(berth_${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE} Threads::Threads)
endfunction()

function(berth_layer_tests name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  berth_units(units ${name}_test ${sources})
  add_executable(${name}_test ${units})
  set(timeout_s 300)
  # Tests compile faster with less optimized; what takes long to run is in the layers.
  if(BERTH_SANITIZE)
    target_compile_options(${name}_test PRIVATE -O0)
    set(timeout_s 900)  # the longest histories take minutes beside others
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name}_test PRIVATE -O1)
  endif()
  target_link_libraries(${name}_test PRIVATE berth_${name} ${ARGN} GTest::gtest_main GTest::gmock rapidcheck)
  gtest_discover_tests(${name}_test TEST_PREFIX "${BERTH_TEST_PREFIX}${name}." WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                       NO_PRETTY_VALUES  # a parameter of a test is no part of its name
                       DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${timeout_s})
endfunction()
