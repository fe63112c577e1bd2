# Read by ctest itself, each time that it runs: adds the tests of a sanitized build (asan.*) to those of this one, so that
# `./dev test` has one run and one summary. Only when asked to, so that a stale sanitized build never takes part.
if(NOT "$ENV{BERTH_SANITIZED_BUILD}" STREQUAL "")
  include("$ENV{BERTH_SANITIZED_BUILD}/tests/CTestTestfile.cmake")
endif()
