# Checks of the tree itself, tools/check_*.py, and the tests that show that they can fail.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
foreach(check layers sizes docs)
  add_test(NAME check.${check} COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check_${check}.py)
endforeach()
add_test(NAME check.crds COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/generate_crds.py --check)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_test(NAME check.elf COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check_elf.py
                                  ${CMAKE_BINARY_DIR}/bin/berth)
  set(elf check.elf)
endif()
add_test(NAME check.checks COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/checks/checks_test.py)
set_tests_properties(check.layers check.sizes check.docs check.crds check.checks ${elf} PROPERTIES
  LABELS check SKIP_RETURN_CODE 77 TIMEOUT 120)
