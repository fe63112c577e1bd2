# The command line as a user meets it. Each case of tests/cli/cli_test.py is a test of its own name: its exit codes and
# messages, and every folder of examples/ with the placements of tests/cli/examples/<name>.json. What the documents
# show of it is a test of its own.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
set(cli_test ${CMAKE_SOURCE_DIR}/tests/cli/cli_test.py)
file(STRINGS ${cli_test} cases REGEX "^def case_")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${cli_test})
file(GLOB examples CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/examples ${CMAKE_SOURCE_DIR}/examples/*)
set(arguments "")
foreach(case ${cases})
  string(REGEX REPLACE "^def case_([a-z0-9_]+).*" "\\1" case "${case}")
  list(APPEND arguments ${case})
endforeach()
foreach(example ${examples})
  if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/examples/${example})
    list(APPEND arguments examples/${example})
  endif()
endforeach()
foreach(argument ${arguments})
  add_test(NAME cli.${argument} COMMAND ${Python3_EXECUTABLE} ${cli_test} $<TARGET_FILE:berth> ${argument}
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(cli.${argument} PROPERTIES LABELS cli TIMEOUT 60)
endforeach()
add_test(NAME cli.transcripts COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/cli/transcripts_test.py $<TARGET_FILE:berth>
         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(cli.transcripts PROPERTIES LABELS cli TIMEOUT 60)
add_test(NAME cli.histories COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/cli/histories_test.py $<TARGET_FILE:berth>
         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(cli.histories PROPERTIES LABELS cli TIMEOUT 1200)
