#pragma once

#include <cstdio>

/// Ends a function that is executed in a forked process, whose exit code is all that the test sees: returns 1
/// unless the condition holds, and says on standard error which one did not.
#define REQUIRE(condition)                                                       \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
      return 1;                                                                  \
    }                                                                            \
  } while (false)
