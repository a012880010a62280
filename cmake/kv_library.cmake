# What every target shares: warnings, sanitizers, the include root.
add_library(kv_flags INTERFACE)
target_compile_features(kv_flags INTERFACE cxx_std_20)
target_include_directories(kv_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/kvstore>)
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these inside inlined std::string code that is right (GCC bug 105329 and its kin).
  list(APPEND warnings -Wno-restrict -Wno-maybe-uninitialized)
endif()
# Of ours, not of those who use the installed libraries.
target_compile_options(kv_flags INTERFACE "$<BUILD_INTERFACE:${warnings}>")
if(KV_SANITIZE)
  target_compile_options(kv_flags INTERFACE -fsanitize=${KV_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(kv_flags INTERFACE -fsanitize=${KV_SANITIZE})
  if(KV_SANITIZE MATCHES "undefined")
    target_compile_options(kv_flags INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()
if(KV_FUZZ)
  target_compile_options(kv_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# kv_library(NAME SOURCES ... PUBLIC ... PRIVATE ...): the one library of a folder. PUBLIC are the targets its
# headers need, PRIVATE those that only its sources need.
function(kv_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC kv_flags ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
endfunction()
