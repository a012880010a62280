include(GoogleTest)

# kv_test(NAME SOURCES ... LIBRARIES ... [TIMEOUT seconds]): one test program; each of its tests is one of ctest's.
function(kv_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE kv_test_support ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}."
                       PROPERTIES TIMEOUT ${arg_TIMEOUT})
endfunction()
