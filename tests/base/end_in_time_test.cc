#include "base/end_in_time.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace kvstore {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ExitedWithCode;

[[noreturn]] void Hang() {
  for (;;) ::pause();
}

void Tell(const std::string& left) { std::fprintf(stderr, "left: %s.\n", left.c_str()); }

/// Each test has a process of its own for what it does, since that process ends.
class EndInTimeTest : public ::testing::Test {
 protected:
  EndInTimeTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(EndInTimeTest, AProcessThatHangsEndsAndSaysWhatItWaitedFor) {
  const auto hangs = [] {
    EndInTime end;
    end.SetWaitingFor([] { return std::string("the first"); });
    end.Begin(milliseconds(10), &Tell);
    end.SetWaitingFor([] { return std::string("the second"); });
    Hang();
  };
  EXPECT_EXIT(hangs(), ExitedWithCode(1), "left: the (first|second)\\.");
}

TEST_F(EndInTimeTest, AProcessWhoseLogHangsEndsToo) {
  const auto hangs = [] {
    EndInTime end;
    end.Begin(milliseconds(10), [](const std::string&) { Hang(); });
    Hang();
  };
  EXPECT_EXIT(hangs(), ExitedWithCode(1), "");
}

TEST_F(EndInTimeTest, AProcessThatCannotSayWhatItWaitsForEndsToo) {
  const auto hangs = [] {
    EndInTime end;
    end.SetWaitingFor([]() -> std::string { Hang(); });
    end.Begin(milliseconds(10), &Tell);
    Hang();
  };
  EXPECT_EXIT(hangs(), ExitedWithCode(1), "");
}

TEST_F(EndInTimeTest, TheTimeIsChangedWhileItRuns) {
  const auto hangs = [] {
    EndInTime end;
    end.Extend(hours(5));  // does nothing yet
    end.SetWaitingFor([] { return std::string("the last"); });
    end.Begin(hours(1), &Tell);
    end.Extend(hours(1));
    end.Extend(-hours(2));
    Hang();
  };
  EXPECT_EXIT(hangs(), ExitedWithCode(1), "left: the last\\.");
}

TEST_F(EndInTimeTest, WhatEndsInTimeIsLeftAlone) {
  {
    EndInTime end;
    end.Begin(hours(1), &Tell);
    end.Done();
    end.Extend(hours(1));
  }
  const EndInTime never_begun;
}

}  // namespace
}  // namespace kvstore
