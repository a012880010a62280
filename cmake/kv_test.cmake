include(GoogleTest)

# The properties of a long test: it is begun first, so that none is alone at the end. It computes more than it waits; of
# the others ./dev runs three on each core.
set(KV_LONG_TEST LABELS long COST 100)
if(NOT KV_SANITIZE)
  list(APPEND KV_LONG_TEST PROCESSORS 2)
endif()

# kv_test(NAME SOURCES ... [ALONE ...] LIBRARIES ... [TIMEOUT seconds] [COST seconds] [WHOLE] [LONG]): one test program, with
# sources as of kv_library; each of its tests is one of ctest's, or with WHOLE all of them together, because they share what
# is slow to start. LONG: kills, histories and the like, again and again, which ./dev test --quick leaves out. COST: about how
# long it takes, if that is more than a minute: ctest, which knows of no earlier run in a clean clone, begins the longest ones
# first. TIMEOUT: what it takes on a busy machine, several times over, because only a test that hangs is to be ended.
function(kv_test name)
  cmake_parse_arguments(arg "WHOLE;LONG" "TIMEOUT;COST" "SOURCES;ALONE;LIBRARIES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
    if(arg_WHOLE)
      set(arg_TIMEOUT 1200)
    endif()
  endif()
  add_executable(${name} ${arg_SOURCES} ${arg_ALONE})
  kv_together(${name} ${arg_ALONE})
  target_link_libraries(${name} PRIVATE kv_test_support ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  kv_precompile(${name} FROM kv_test_support)
  set(labels "")
  if(arg_LONG)
    set(labels ${KV_LONG_TEST})
  endif()
  if(arg_COST)
    list(APPEND labels COST ${arg_COST})
  endif()
  if(arg_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} ${labels})
    return()
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}."
                       PROPERTIES TIMEOUT ${arg_TIMEOUT} ${labels})
endfunction()
