#include "base/one_event.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace kvstore {
namespace {

TEST(OneEvent, WhatWasDoneBeforeIsSeen) {
  for (int i = 0; i < 10'000; ++i) {
    OneEvent event;
    int written = 0;
    std::thread notifies;
    if (i % 10 == 0) {
      notifies = std::thread([&] {
        written = i;
        event.Notify();
      });
    } else {
      written = i;
      event.Notify();
    }
    if (i % 20 == 0) {
      event.Wait();
    } else {
      EXPECT_TRUE(event.WaitUntil(OneEvent::Clock::now() + std::chrono::minutes(1)));
    }
    EXPECT_TRUE(event.has_happened());
    EXPECT_EQ(written, i);
    if (notifies.joinable()) notifies.join();
  }
}

TEST(OneEvent, AWaitEndsAtItsDeadline) {
  OneEvent event;
  EXPECT_FALSE(event.WaitUntil(OneEvent::Clock::now() - std::chrono::seconds(1)));
  EXPECT_FALSE(event.WaitUntil(OneEvent::Clock::now() + std::chrono::milliseconds(1)));
  EXPECT_FALSE(event.WaitUntil(OneEvent::Clock::time_point::min()));
  EXPECT_FALSE(event.has_happened());
  // It can be waited for again, as long as one likes.
  std::thread notifies([&] { event.Notify(); });
  EXPECT_TRUE(event.WaitUntil(OneEvent::Clock::time_point::max()));
  EXPECT_TRUE(event.WaitUntil(OneEvent::Clock::time_point::min())) << "it has happened already";
  notifies.join();
}

}  // namespace
}  // namespace kvstore
