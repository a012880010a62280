#include "fleet_backup/binlog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fleet_backup/made_binlog.h"
#include "tests/support/status_matchers.h"

/// How a binary log is taken apart.
namespace kvstore::fleet_backup {
namespace {

using absl::StatusCode;
using testing::FailsWith;
using testing::MadeEvent;
using testing::MadeFormat;
using testing::MadeTransaction;

/// The parts of a log that ReadGroups has found.
struct Found {
  std::vector<std::string> formats;
  std::vector<shardops::Gtid> gtids;
  std::string groups;  // the bytes of all
};

absl::StatusOr<Found> Read(const std::string& log) {
  Found found;
  const absl::Status read = ReadGroups(
      log,
      [&](std::string_view bytes) {
        found.formats.emplace_back(bytes);
        return absl::OkStatus();
      },
      [&](const BinlogGroup& group) {
        found.gtids.push_back(group.gtid);
        found.groups += group.bytes;
        return absl::OkStatus();
      });
  if (!read.ok()) return read;
  return found;
}

TEST(Binlog, ATransactionIsAllEventsUpToTheNext) {
  const std::string first = MadeTransaction(1, 7, 17, 1000, "INSERT");
  const std::string second = MadeTransaction(2, 8, 4'000'000'000'000, 1001, "UPDATE");
  ASSERT_OK_AND_ASSIGN(const Found found, Read(MadeFormat() + first + second));
  EXPECT_THAT(found.formats, ::testing::ElementsAre(MadeFormat()));
  EXPECT_THAT(found.gtids,
              ::testing::ElementsAre(shardops::Gtid{1, 7, 17}, shardops::Gtid{2, 8, 4'000'000'000'000}));
  EXPECT_EQ(found.groups, first + second);
}

TEST(Binlog, AFormatHoldsForWhatFollows) {
  const std::string log = MadeFormat("10.11") + MadeTransaction(1, 7, 1, 1, "a") + MadeFormat("11.4") +
                          MadeTransaction(1, 7, 2, 1, "b");
  ASSERT_OK_AND_ASSIGN(const Found found, Read(log));
  EXPECT_EQ(found.formats.size(), 2u);
  EXPECT_EQ(found.gtids.size(), 2u);
}

TEST(Binlog, EventsOfTheServersFilesAreInNoTransaction) {
  for (const uint8_t type : {3, 4, 15, 27, 161, 163}) {
    const std::string bytes = MadeEvent(type, 1, 1, "body");
    EXPECT_FALSE(IsInGroup(*FirstEvent(bytes))) << int{type};
  }
  EXPECT_TRUE(IsInGroup(*FirstEvent(MadeEvent(2, 1, 1, "INSERT"))));
  constexpr uint16_t kArtificial = 0x20;
  const std::string made_up = MadeEvent(2, 1, 1, "INSERT", kArtificial);
  EXPECT_FALSE(IsInGroup(*FirstEvent(made_up)));
}

TEST(Binlog, WhatIsNoLogIsRefused) {
  const std::string log = MadeFormat() + MadeTransaction(1, 7, 17, 1000, "INSERT");
  EXPECT_OK(Read(""));
  for (const size_t size : {size_t{1}, size_t{18}, MadeFormat().size() + 3, MadeFormat().size() + 20}) {
    EXPECT_THAT(Read(log.substr(0, size)), FailsWith(StatusCode::kDataLoss, "cut off")) << size;
  }
  EXPECT_THAT(Read(MadeTransaction(1, 7, 17, 1000, "INSERT")),
              FailsWith(StatusCode::kDataLoss, "not part of a transaction"));
  EXPECT_THAT(Read(MadeFormat() + MadeEvent(2, 1, 1, "INSERT")),
              FailsWith(StatusCode::kDataLoss, "not part of a transaction"));
  EXPECT_FALSE(FirstEvent(std::string(19, '\0')));
  EXPECT_FALSE(FirstEvent(std::string(19, '\xff')));
}

}  // namespace
}  // namespace kvstore::fleet_backup
