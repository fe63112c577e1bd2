# Warnings are errors; release builds are hardened; sanitizers come from BERTH_SANITIZE.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Werror
                    # A file in a unit looks like a header, in which a class must not hold types of the unnamed namespace.
                    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection
                      -fcf-protection)
  add_link_options(-pie -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
endif()
if(BERTH_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-tsan)  # Asio counts references with fences, which GCC's ThreadSanitizer does not model
  add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()
find_program(BERTH_MOLD mold)
if(BERTH_MOLD AND NOT BERTH_FUZZ)
  add_link_options(-fuse-ld=mold)
endif()
