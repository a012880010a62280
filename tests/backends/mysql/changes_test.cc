#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/backends/mysql/changes_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"

/// The changes of datasets on real servers, read from their binary logs: what a follower has is what the
/// dataset has.
namespace kvstore::testing {
namespace {

const std::vector<std::string> kLogs = {"--log-bin=binlog", "--binlog-format=ROW", "--gtid-strict-mode=ON",
                                        "--sync-binlog=1", "--log-slave-updates"};
const bool kShared = ShareFleet(kLogs);

TEST_F(MySqlChangesTest, EachShapeIsToldAsItIsNow) {
  Create({.name = "rows", .max_versions = 2});
  Create({.name = "pins", .shape = Shape::kObjects, .type = 7});
  Create({.name = "links", .shape = Shape::kMappings});
  ASSERT_OK(Put("rows", "user:7", "click", "pin:3"));
  ASSERT_OK(Put("rows", "user:7", "view", "pin:4"));
  ASSERT_OK(store_->DeleteRow("rows", "user:7", {.columns = std::vector<std::string>{"click"}}));
  const auto id = store_->CreateObject("pins", R"({"a": 1})", {});
  ASSERT_OK(id);
  const auto gone = store_->CreateObject("pins", R"({"a": 2})", {});
  ASSERT_OK(gone);
  ASSERT_OK(store_->DeleteObject("pins", *gone, true));
  ASSERT_OK(store_->AddMapping("links", *id, 5, 17));
  ASSERT_OK(store_->AddMapping("links", *id, 6, 18));
  ASSERT_OK(store_->RemoveMapping("links", *id, 6).status());
  for (const std::string dataset : {"rows", "pins", "links"}) {
    Replica replica;
    std::string token;
    Follow(dataset, replica, token);
    ExpectEqual(dataset, replica);
    EXPECT_EQ(replica.columns.size() + replica.objects.size() + replica.mappings.size(), 1u) << dataset;
  }
}

TEST_F(MySqlChangesTest, ATokenGoesOnBehindEachChangeInAnyProcess) {
  Create({.name = "rows"});
  std::string token;
  Replica replica;
  for (int i = 0; i < 30; ++i) ASSERT_OK(Put("rows", fmt::format("r{}", i % 7), fmt::format("c{}", i), "v"));
  std::string from(kChangesFromBegin);
  int told = 0;
  for (;;) {
    // A page of one, and each by another process.
    if (told % 10 == 5) Open();
    const auto page = store_->ReadChanges("rows", from, {.limit = 1});
    ASSERT_OK(page);
    for (const Change& change : page->changes) {
      replica.Apply(change);
      from = change.token;
      ++told;
    }
    if (!page->changes.empty()) continue;
    from = page->token;
    if (page->complete_until_ms != 0) break;
  }
  EXPECT_GE(told, 30) << "and perhaps what is in the log of an earlier dataset of this name";
  ExpectEqual("rows", replica);
}

TEST_F(MySqlChangesTest, FromNowHasWhatIsWrittenSince) {
  Create({.name = "rows"});
  ASSERT_OK(Put("rows", "before", "c", "v"));
  const auto page = store_->ReadChanges("rows", kChangesFromNow, {});
  ASSERT_OK(page);
  EXPECT_TRUE(page->changes.empty());
  std::string token = page->token;
  ASSERT_OK(Put("rows", "behind", "c", "v"));
  Replica replica;
  Follow("rows", replica, token);
  EXPECT_EQ(replica.columns.size(), 1u);
  EXPECT_TRUE(replica.columns.contains({"behind", "c"}));
}

TEST_F(MySqlChangesTest, TwoDatasetsOnAServerDoNotMix) {
  Create({.name = "one"});
  Create({.name = "one_more"});
  Create({.name = "links", .shape = Shape::kMappings});
  ASSERT_OK(Put("one", "r", "c", "1"));
  ASSERT_OK(Put("one_more", "r", "c", "2"));
  ASSERT_OK(store_->AddMapping("links", 1, 2, 3));
  Replica replica;
  std::string token;
  Follow("one", replica, token);
  ExpectEqual("one", replica);
  const auto other = store_->ReadChanges("one_more", token, {});
  EXPECT_THAT(other, FailsWith(absl::StatusCode::kInvalidArgument, ""));
}

/// A follower that is behind reads by a connection which is kept between its pages, and which the server may
/// have brought to the end of its log long before.
TEST_F(MySqlChangesTest, WhatWasWrittenBetweenTwoPagesIsThereBeforeItsTimeIsComplete) {
  Create({.name = "rows", .max_versions = 0});
  for (int i = 0; i < 200; ++i) ASSERT_OK(Put("rows", fmt::format("r{:03}", i), "c", "v"));
  Open();
  auto page = store_->ReadChanges("rows", "begin", {.limit = 150});
  ASSERT_OK(page);
  ASSERT_EQ(page->changes.size(), 150u);
  // On all servers.
  constexpr size_t kLate = 30;
  const CellWrite cell{"c", "late", std::nullopt};
  uint64_t last = 0;
  for (size_t i = 0; i < kLate; ++i) {
    const auto late = store_->PutRow("rows", fmt::format("late{}", i), {&cell, 1}, {});
    ASSERT_OK(late);
    last = std::max(last, *late->timestamp);
  }
  ASSERT_TRUE(Eventually([&] { return WallClockMs() > last + 1; }));
  size_t told = 0;
  do {
    page = store_->ReadChanges("rows", page->token, {.limit = 150});
    ASSERT_OK(page);
    for (const Change& change : page->changes) {
      if (std::get<RowChange>(change.what).row.starts_with("late")) ++told;
    }
  } while (page->complete_until_ms <= last);
  EXPECT_EQ(told, kLate);
}

TEST_F(MySqlChangesTest, ALargeTransactionComesInParts) {
  Create({.name = "rows", .max_versions = 0});
  constexpr int kColumns = 3'000;
  std::vector<std::string> names;
  std::vector<CellWrite> cells;
  for (int i = 0; i < kColumns; ++i) names.push_back(fmt::format("column{:06}", i));
  for (const std::string& name : names) cells.push_back({name, "v", std::nullopt});
  ASSERT_OK(store_->PutRow("rows", "large", cells, {}).status());
  Replica replica;
  std::string token;
  Follow("rows", replica, token);
  EXPECT_EQ(replica.columns.size(), size_t{kColumns});
  const std::string behind = token;
  ASSERT_OK(store_->DeleteRow("rows", "large", {}));
  ASSERT_OK(Put("rows", "large", "column000017", "new"));
  // By the thread that all share, and by a connection of its own, which is parked or made anew.
  for (const bool reopens : {false, true}) {
    Replica parts = replica;
    token = behind;
    size_t pages = 0;
    for (;; ++pages) {
      if (reopens && pages % 3 == 0) Open();
      const auto page = store_->ReadChanges("rows", token, {.limit = 700});
      ASSERT_OK(page);
      EXPECT_LE(page->changes.size(), 700u);
      for (const Change& change : page->changes) parts.Apply(change);
      token = page->token;
      if (page->complete_until_ms != 0) break;
    }
    EXPECT_GE(pages, 4u);
    ExpectEqual("rows", parts);
  }
}

TEST_F(MySqlChangesTest, AFollowerIsLikeTheDatasetThoughServersAreKilled) {
  Create({.name = "rows", .max_versions = 3});
  Random random(Seed("mysql changes"));
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, mine = Random(random.Next())]() mutable {
      while (!stop) {
        const std::string row = fmt::format("r{}", mine.Below(40));
        const std::string column = fmt::format("c{}", mine.Below(5));
        const bool done = mine.OneIn(10) ? store_->DeleteRow("rows", row, {}).ok()
                                         : Put("rows", row, column, std::to_string(mine.Next())).ok();
        if (done) ++written;
      }
    });
  }
  Replica replica;
  std::string token;
  std::atomic<bool> followed{false};
  std::thread follower([&] {
    while (!followed) {
      const absl::Status status = replica.Follow(*store_, "rows", token, 50);
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
    }
  });
  for (int kill = 0; kill < 4; ++kill) {
    const uint64_t before = written;
    EXPECT_TRUE(Eventually([&] { return written > before + 300; }));
    MariaDbServer& server = SharedFleet().server(kill % 2);
    server.Kill();
    server.Start();
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  followed = true;
  follower.join();
  EXPECT_TRUE(Eventually([&] { return replica.Follow(*store_, "rows", token).ok(); }));
  ExpectEqual("rows", replica);
  // On a busy machine the follower may have been behind all the time, and read by connections of its own.
  EXPECT_TRUE(Eventually([&] {
    return Put("rows", "r", "c", "v").ok() && replica.Follow(*store_, "rows", token).ok() &&
           backend_->changes().pages().shared > 0;
  }));
}

TEST_F(MySqlChangesTest, ASnapshotAndWhatFollowsHaveNoHoleInBetween) {
  Create({.name = "rows", .max_versions = 1});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    Random random(Seed("mysql snapshot"));
    for (int i = 0; !stop; ++i) {
      EXPECT_OK(Put("rows", fmt::format("r{}", random.Below(100)), "c", std::to_string(i)));
    }
  });
  for (int round = 0; round < 5; ++round) {
    const auto begin = store_->ReadChanges("rows", kChangesFromNow, {.limit = 1});
    ASSERT_OK(begin);
    auto replica = Replica::Of(*store_, "rows");
    ASSERT_OK(replica);
    std::string token = begin->token;
    Follow("rows", *replica, token);
    if (round == 4) {
      stop = true;
      writer.join();
      Follow("rows", *replica, token);
      ExpectEqual("rows", *replica);
    }
  }
}

TEST_F(MySqlChangesTest, WhatIsOnMyRocksIsToldOnceItIsThere) {
  Create({.name = "rows", .max_versions = 1, .engine = "myrocks"});
  // The writers end by themselves: on a fast disk they write more than one follower reads.
  constexpr uint64_t kWrites = 1'000;
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; written < kWrites; ++i) {
        EXPECT_OK(Put("rows", fmt::format("r{}-{}", writer, i % 50), "c", std::to_string(i)));
        ++written;
      }
    });
  }
  Replica replica;
  std::string token;
  while (written < kWrites) Follow("rows", replica, token);
  for (std::thread& writer : writers) writer.join();
  Follow("rows", replica, token);
  ExpectEqual("rows", replica);
}

TEST_F(MySqlChangesTest, ATokenOfAnotherBackendIsRefused) {
  Create({.name = "rows"});
  const DatasetSpec spec = *store_->GetDataset("rows");
  EXPECT_THAT(backend_->ReadChanges(spec, std::string(20, '\0'), {}),
              FailsWith(absl::StatusCode::kOutOfRange, "another backend"));
}

TEST_F(MySqlChangesTest, ManyFollowersShareOneReader) {
  Create({.name = "rows"});
  std::vector<std::string> tokens(20);
  std::vector<Replica> replicas(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto page = store_->ReadChanges("rows", kChangesFromNow, {});
    ASSERT_OK(page);
    tokens[i] = page->token;
  }
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK(Put("rows", fmt::format("r{}", i), "c", "2"));
    Follow("rows", replicas[i % tokens.size()], tokens[i % tokens.size()]);
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    Follow("rows", replicas[i], tokens[i]);
    ExpectEqual("rows", replicas[i]);
  }
  EXPECT_EQ(backend_->changes().pages().own, 0u);
  // Only the threads that read, one for each host, are there.
  EXPECT_TRUE(Eventually([&] {
    return SharedFleet().server(0).Run(
               "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Binlog Dump'") == "1\n";
  }));
}

}  // namespace
}  // namespace kvstore::testing
