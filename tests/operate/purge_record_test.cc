#include "operate/purge_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::testing {
namespace {

using operate::LoadPurge;
using operate::PurgeRecord;
using operate::SavePurge;
using ::testing::HasSubstr;

constexpr uint64_t kHourMs = 3'600'000;
constexpr uint64_t kDayMs = 24 * kHourMs;
constexpr uint64_t kDay = 20'000 * kDayMs;  // midnight

TEST(PurgeRecord, ADaysPurgeIsDueFromItsHourUntilItHasBegun) {
  const PurgeRecord yesterday{.begun_ms = kDay - kDayMs + 3 * kHourMs, .complete_ms = 0};
  EXPECT_FALSE(IsPurgeDue(yesterday, 3, kDay + 3 * kHourMs - 1));
  EXPECT_TRUE(IsPurgeDue(yesterday, 3, kDay + 3 * kHourMs));
  EXPECT_TRUE(IsPurgeDue(yesterday, 3, kDay + kDayMs - 1)) << "the leader of that hour died";
  const PurgeRecord today{.begun_ms = kDay + 3 * kHourMs + 5, .complete_ms = 0};
  EXPECT_FALSE(IsPurgeDue(today, 3, kDay + 3 * kHourMs + 6));
  EXPECT_FALSE(IsPurgeDue(today, 3, kDay + kDayMs + 3 * kHourMs - 1));
  EXPECT_TRUE(IsPurgeDue(today, 3, kDay + kDayMs + 3 * kHourMs));
  EXPECT_TRUE(IsPurgeDue(yesterday, 0, kDay));
  EXPECT_TRUE(operate::IsPurgeDue({.begun_ms = kDay - 1, .complete_ms = 0}, 0, kDay));
}

TEST(PurgeRecord, ABacklogIsToldAfterTwoDays) {
  const PurgeRecord record{.begun_ms = kDay + 2 * kDayMs, .complete_ms = kDay};
  EXPECT_FALSE(FindBacklog(record, kDay - 5).has_value()) << "a clock that was set back";
  EXPECT_FALSE(FindBacklog(record, kDay + 2 * kDayMs + kHourMs).has_value());
  const auto backlog = FindBacklog(record, kDay + 50 * kHourMs);
  ASSERT_TRUE(backlog.has_value());
  EXPECT_EQ(backlog->subject, "purge");
  EXPECT_THAT(backlog->text, HasSubstr("for 50 hours"));
}

TEST(PurgeRecord, ALeaderKnowsWhatTheOneBeforeHasDone) {
  ZooKeeperServer server;
  ZooKeeper zookeeper({.servers = server.address()}, nullptr);
  const auto first = LoadPurge(zookeeper, "/kvstore", kDay);
  ASSERT_OK(first);
  EXPECT_FALSE(IsPurgeDue(*first, 0, kDay)) << "the first purge waits for its hour";
  EXPECT_EQ(LoadPurge(zookeeper, "/kvstore", kDay + 1)->complete_ms, kDay) << "it was looked at before";
  ASSERT_OK(SavePurge(zookeeper, "/kvstore", {.begun_ms = kDay + 7, .complete_ms = kDay + 5}));
  const auto now = LoadPurge(zookeeper, "/kvstore", kDay + kDayMs);
  ASSERT_OK(now);
  EXPECT_EQ(now->begun_ms, kDay + 7);
  EXPECT_EQ(now->complete_ms, kDay + 5);
  for (const char* const text : {"", "[]", R"({"begun_ms": 1})", R"({"begun_ms": -1, "complete_ms": 2})"}) {
    ASSERT_OK(zookeeper.Set("/kvstore/operate/purge", text, /*version=*/-1));
    EXPECT_THAT(LoadPurge(zookeeper, "/kvstore", kDay).status(),
                FailsWith(absl::StatusCode::kDataLoss, "/kvstore/operate/purge in ZooKeeper cannot be read"));
  }
}

}  // namespace
}  // namespace kvstore::testing
