# The flags that every target shares: warnings, sanitizers, the include root.
add_library(kv_flags INTERFACE)
target_compile_features(kv_flags INTERFACE cxx_std_20)
target_include_directories(kv_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/kvstore>)
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these inside inlined std::string code that is right (GCC bug 105329 and its kin).
  list(APPEND warnings -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Checks the locks that are declared with base/mutex.h.
  list(APPEND warnings -Wthread-safety)
endif()
# The warnings are for our sources, not for those of projects that use the installed libraries.
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

# fmt for the libraries of an application that only talks to a server: it is compiled into them, so that such an
# application needs gRPC and abseil alone.
set(KV_FMT $<BUILD_INTERFACE:fmt::fmt-header-only>)

# Without a cache of compilers (CMAKE_CXX_COMPILER_LAUNCHER, which ./dev sets where ccache is installed) the first build
# is what takes long, and most of it is headers that are read again for each source. So several sources of a library are
# compiled as one (CMake's unity builds), and heavy headers are precompiled. With a cache each source is compiled alone,
# since a change would make all of its unit or of its precompiled header new. The fuzz build does neither: Clang insists on
# the same flags.
set(together ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR KV_FUZZ)
  set(together OFF)
endif()
option(KV_TOGETHER "Compile several sources of a library as one" ${together})
option(KV_PRECOMPILE "Precompile heavy headers" ${together})
if(KV_TOGETHER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Like the guesses above (GCC bug 105651). GCC inlines otherwise where more is compiled as one, and makes others.
  foreach(guess array-bounds dangling-pointer free-nonheap-object stringop-overflow stringop-overread use-after-free)
    target_compile_options(kv_flags INTERFACE $<BUILD_INTERFACE:-Wno-error=${guess}>)
  endforeach()
endif()

# kv_together(TARGET SOURCE...) compiles the sources of a target together, if that is wanted, but each of these alone: they
# have names for things of their own that others of its sources have as well.
function(kv_together target)
  if(NOT KV_TOGETHER)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# kv_library(NAME SOURCES ... [ALONE ...] PUBLIC ... PRIVATE ...): the one library of a folder. ALONE are those of its
# sources that are always compiled alone, see kv_together; PUBLIC are the targets its headers need, PRIVATE those that only
# its sources need.
function(kv_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;ALONE;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES} ${arg_ALONE})
  kv_together(${name} ${arg_ALONE})
  target_link_libraries(${name} PUBLIC kv_flags ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
endfunction()

# kv_precompile(TARGET HEADER...) precompiles headers for a target, in the form of target_precompile_headers;
# kv_precompile(TARGET FROM OTHER) uses those of another target, which must have the same flags.
function(kv_precompile target)
  if(NOT KV_PRECOMPILE)
    return()
  endif()
  # A source whose flags differ is compiled without, which takes longer and is no fault. Some libraries bring -pthread, so
  # all targets get it here.
  target_compile_options(${target} PRIVATE -Wno-error=invalid-pch -pthread)
  if("${ARGV1}" STREQUAL FROM)
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
    # The compiler takes them only where the same macros are defined.
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:${ARGV2},COMPILE_DEFINITIONS>)
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# kv_program(NAME): what the programs that are installed have in common.
function(kv_program name)
  if(NOT KV_SANITIZE)
    # Answers are made on one thread and freed on another, which glibc's malloc is slow at (docs/performance.md).
    find_library(Jemalloc_LIBRARY jemalloc REQUIRED)
    target_link_libraries(${name} PRIVATE ${Jemalloc_LIBRARY})
  endif()
  if(KV_SANITIZE MATCHES "thread")
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cli/tsan_options.cc)
  endif()
  install(TARGETS ${name})
endfunction()
