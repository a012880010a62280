#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "kvstore_api/limits.h"
#include "kvstore_api/open.h"
#include "tests/support/random.h"
#include "tests/support/replica.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The changes of datasets, as those who follow them see them.
namespace kvstore {
namespace {

using testing::FailsWith;
using testing::Replica;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kGone = absl::StatusCode::kOutOfRange;
constexpr uint64_t kDay = 86'400'000;

class ChangesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Reopen();
    ASSERT_OK(store_->CreateDataset({.name = "rows", .max_versions = 0, .keep_changes_ms = kDay}));
    ASSERT_OK(store_->CreateDataset(
        {.name = "pins", .shape = Shape::kObjects, .type = 7, .keep_changes_ms = kDay}));
    ASSERT_OK(store_->CreateDataset({.name = "boards", .shape = Shape::kMappings, .keep_changes_ms = kDay}));
    ASSERT_OK(store_->CreateDataset({.name = "quiet"}));
  }
  void Reopen() {
    store_.reset();
    auto opened = Open({.data = dir_ / "s"});
    ASSERT_OK(opened);
    store_ = *std::move(opened);
  }
  void Put(std::string_view row, std::string_view column, std::string_view value, uint64_t timestamp) {
    const CellWrite cell{column, value, timestamp};
    ASSERT_OK(store_->PutRow("rows", row, {&cell, 1}, {}));
  }
  /// All changes of a dataset.
  std::vector<Change> All(const std::string& dataset, std::string_view from = kChangesFromBegin) {
    const auto page = store_->ReadChanges(dataset, from, {});
    EXPECT_OK(page);
    return page.ok() ? page->changes : std::vector<Change>();
  }
  std::string Now(const std::string& dataset) {
    return store_->ReadChanges(dataset, kChangesFromNow, {})->token;
  }

  const testing::TempDir dir_;
  std::unique_ptr<KVStore> store_;
};

TEST_F(ChangesTest, AColumnIsToldAsItIsNow) {
  Put("r", "x", "old", 1);
  Put("r", "x", "new", 2);
  const auto changes = All("rows");
  ASSERT_EQ(changes.size(), 2u);
  const RowChange expected{.row = "r", .column = "x", .cells = {{2, "new"}, {1, "old"}}};
  EXPECT_EQ(std::get<RowChange>(changes[0].what), expected);
  EXPECT_EQ(std::get<RowChange>(changes[1].what), expected);
  EXPECT_NE(changes[0].token, changes[1].token);
  EXPECT_LE(changes[0].at_ms, changes[1].at_ms);
  // Behind the first there is the second.
  EXPECT_EQ(All("rows", changes[0].token).size(), 1u);
  EXPECT_TRUE(All("rows", changes[1].token).empty());
}

TEST_F(ChangesTest, DeletesOfColumnsRowsAndCells) {
  Put("r", "x", "v", 1);
  Put("r", "y", "v", 1);
  Put("r", "y", "w", 2);
  const std::string from = Now("rows");
  ASSERT_OK(store_->DeleteRow("rows", "r", {.columns = {{"x"}}}));
  ASSERT_OK(store_->DeleteRow("rows", "r", {.cells = {{{"y", 1}}}}));
  auto changes = All("rows", from);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(std::get<RowChange>(changes[0].what), (RowChange{.row = "r", .column = "x", .cells = {}}));
  EXPECT_EQ(std::get<RowChange>(changes[1].what),
            (RowChange{.row = "r", .column = "y", .cells = {{2, "w"}}}));
  ASSERT_OK(store_->DeleteRow("rows", "r", {}));
  EXPECT_EQ(std::get<RowChange>(All("rows", changes[1].token)[0].what),
            (RowChange{.row = "r", .column = "y", .cells = {}}));
  // A delete of a row that does not exist is no change.
  const std::string before = Now("rows");
  ASSERT_OK(store_->DeleteRow("rows", "none", {}));
  EXPECT_TRUE(All("rows", before).empty());
}

TEST_F(ChangesTest, ADeleteOfAWideRowIsOneChange) {
  std::vector<std::string> names;
  for (int i = 0; i < 3'000; ++i) names.push_back("c" + std::to_string(i));
  std::vector<CellWrite> cells;
  for (const std::string& name : names) cells.push_back({name, "v", 1});
  ASSERT_OK(store_->PutRow("rows", "wide", cells, {}));
  const std::string from = Now("rows");
  ASSERT_OK(store_->DeleteRow("rows", "wide", {}));
  Put("wide", "again", "v", 2);
  const auto changes = All("rows", from);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(std::get<RowChange>(changes[0].what), (RowChange{.row = "wide", .column = {}, .cells = {}}));
  EXPECT_EQ(std::get<RowChange>(changes[1].what),
            (RowChange{.row = "wide", .column = "again", .cells = {{2, "v"}}}));
}

TEST_F(ChangesTest, OfALargeColumnTheNewestCellsAreTold) {
  const std::string value(10'000, 'v');
  for (uint64_t i = 1; i <= 300; ++i) Put("r", "x", value, i);
  ASSERT_OK_AND_ASSIGN(const ChangePage page, store_->ReadChanges("rows", kChangesFromBegin, {.limit = 1}));
  const auto& change = std::get<RowChange>(page.changes.at(0).what);
  EXPECT_TRUE(change.more);
  EXPECT_EQ(change.cells.at(0).timestamp, 300u);
  EXPECT_GT(change.cells.size(), 50u);
  EXPECT_LT(change.cells.size(), 200u);
  const std::string from = Now("rows");
  Put("r", "small", "v", 1);
  EXPECT_FALSE(std::get<RowChange>(All("rows", from).at(0).what).more);
}

TEST_F(ChangesTest, ObjectsAndMappings) {
  ASSERT_OK_AND_ASSIGN(const uint64_t pin, store_->CreateObject("pins", R"({"a":1})", {}));
  ASSERT_OK(store_->DeleteObject("pins", pin, /*hard=*/false));
  auto changes = All("pins");
  ASSERT_EQ(changes.size(), 2u);
  const auto& object = std::get<ObjectChange>(changes[1].what);
  EXPECT_EQ(object.id, pin);
  EXPECT_TRUE(object.data.has_value()) << "it is there, inactive";
  ASSERT_OK(store_->DeleteObject("pins", pin, /*hard=*/true));
  EXPECT_EQ(std::get<ObjectChange>(All("pins").back().what), (ObjectChange{.id = pin, .data = {}}));

  ASSERT_OK(store_->AddMapping("boards", 1, 2, 9));
  ASSERT_OK(store_->AddMapping("boards", 1, 2, 9));
  EXPECT_EQ(All("boards").size(), 1u) << "the second changed nothing";
  EXPECT_EQ(std::get<MappingChange>(All("boards")[0].what),
            (MappingChange{.from = 1, .to = 2, .sequence = 9}));
  ASSERT_TRUE(*store_->RemoveMapping("boards", 1, 2));
  EXPECT_EQ(std::get<MappingChange>(All("boards").back().what),
            (MappingChange{.from = 1, .to = 2, .sequence = {}}));
}

TEST_F(ChangesTest, OnlyWhereTheyAreKept) {
  EXPECT_THAT(store_->ReadChanges("quiet", kChangesFromBegin, {}),
              FailsWith(kPrecondition, "kv dataset alter quiet --keep-changes-ms"));
  EXPECT_THAT(store_->ReadChanges("none", kChangesFromBegin, {}),
              FailsWith(absl::StatusCode::kNotFound, "none"));
  EXPECT_THAT(store_->ReadChanges("rows", "yesterday", {}), FailsWith(kInvalid, "from: must be a token"));
  EXPECT_THAT(store_->ReadChanges("rows", Now("pins"), {}), FailsWith(kInvalid, "another dataset"));
  EXPECT_THAT(store_->ReadChanges("rows", kChangesFromNow, {.limit = 0}), FailsWith(kInvalid, "1..10000"));
  EXPECT_THAT(store_->ReadChanges("rows", kChangesFromNow, {.max_bytes = 0}),
              FailsWith(kInvalid, "max_bytes"));
}

TEST_F(ChangesTest, KeepingBeginsAndEndsWithTheSetting) {
  Put("r", "before", "v", 1);
  const std::string token = Now("rows");
  ASSERT_OK(store_->AlterDataset("rows", {.keep_changes_ms = 0}));
  EXPECT_EQ(store_->GetDataset("rows")->keep_changes_ms, 0u);
  EXPECT_THAT(store_->ReadChanges("rows", token, {}), FailsWith(kPrecondition, "not kept"));
  Put("r", "unseen", "v", 1);
  ASSERT_OK(store_->AlterDataset("rows", {.keep_changes_ms = kDay}));
  EXPECT_THAT(store_->ReadChanges("rows", token, {}), FailsWith(kGone, "not kept any more"))
      << "a write in between was not recorded";
  Put("r", "seen", "v", 1);
  ASSERT_EQ(All("rows").size(), 1u);
  EXPECT_EQ(std::get<RowChange>(All("rows")[0].what).column, "seen");
  Reopen();
  EXPECT_EQ(All("rows").size(), 1u);
}

TEST_F(ChangesTest, PagesOfBytesHaveAtLeastOneChange) {
  for (int i = 0; i < 200; ++i) Put("r" + std::to_string(i), "x", std::string(10'000, 'v'), 1);
  std::string from(kChangesFromBegin);
  size_t all = 0;
  for (uint64_t complete = 0; complete == 0;) {
    ASSERT_OK_AND_ASSIGN(const ChangePage page, store_->ReadChanges("rows", from, {.max_bytes = 25'000}));
    EXPECT_LE(page.changes.size(), 2u);
    all += page.changes.size();
    from = page.token;
    complete = page.complete_until_ms;
  }
  EXPECT_EQ(all, 200u);
  EXPECT_EQ(store_->ReadChanges("rows", kChangesFromBegin, {.max_bytes = 1})->changes.size(), 1u);
}

TEST_F(ChangesTest, ADatasetThatKeepsChangesIsNotAlteredByOthersSettings) {
  // Other settings leave the log alone.
  Put("r", "x", "v", 1);
  ASSERT_OK(store_->AlterDataset("rows", {.max_versions = 3}));
  ASSERT_OK(store_->AlterDataset("rows", {.keep_changes_ms = 2 * kDay}));
  EXPECT_EQ(All("rows").size(), 1u);
  EXPECT_THAT(store_->AlterDataset("rows", {.keep_changes_ms = kMaxTimestamp + 1}),
              FailsWith(kInvalid, "keep_changes_ms"));
}

/// Makes a random change.
void ChangeSomething(KVStore& store, testing::Random& random, std::vector<uint64_t>& pins) {
  const std::string row = "r" + std::to_string(random.Below(5));
  const std::string column = "c" + std::to_string(random.Below(4));
  const std::string value = std::to_string(random.Next());
  const uint64_t from = 1 + random.Below(3);
  const uint64_t to = 1 + random.Below(5);
  switch (random.Below(12)) {
    case 0: {
      ASSERT_OK(store.DeleteRow("rows", row, {}));
      break;
    }
    case 1: {
      ASSERT_OK(store.DeleteRow("rows", row, {.columns = {{column}}}));
      break;
    }
    case 2: {
      const auto id = store.CreateObject("pins", R"({"v":)" + value + "}", {});
      ASSERT_OK(id);
      pins.push_back(*id);
      break;
    }
    case 3:
    case 4: {
      if (pins.empty()) break;
      const uint64_t pin = pins[random.Below(pins.size())];
      // Another thread may have deleted it.
      store.PatchObject("pins", pin, R"({"w":)" + value + "}", {}).status().IgnoreError();
      if (random.OneIn(4)) store.DeleteObject("pins", pin, random.OneIn(2)).IgnoreError();
      break;
    }
    case 5:
    case 6: {
      ASSERT_OK(store.AddMapping("boards", from, to, random.Below(100)));
      break;
    }
    case 7: {
      ASSERT_OK(store.RemoveMapping("boards", from, to));
      break;
    }
    case 8: {
      const CellWrite cell{column, value, std::nullopt};
      std::vector<RowWrite> writes(10, RowWrite{row, {&cell, 1}, {}});
      const std::string other = "batch" + std::to_string(random.Below(3));
      writes[3].row = other;
      ASSERT_OK(store.PutRows("rows", writes));
      break;
    }
    default: {
      const std::vector<CellWrite> cells = {{column, value, 1 + random.Below(5)},
                                            {"always", value, std::nullopt}};
      ASSERT_OK(store.PutRow("rows", row, cells, {}));
      break;
    }
  }
}

TEST_F(ChangesTest, KeepingIsSwitchedOffAndOnWhileTheDatasetIsWrittenTo) {
  std::atomic<bool> done{false};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, writer] {
      for (uint64_t i = 0; !done; ++i) {
        Put("r" + std::to_string(i % 7), "c" + std::to_string(writer), std::to_string(i), 1 + i % 5);
        // A follower must be able to keep up.
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  Replica replica;
  std::string token;
  for (int round = 0; round < 20; ++round) {
    ASSERT_OK(store_->AlterDataset("rows", {.keep_changes_ms = 0}));
    ASSERT_OK(store_->AlterDataset("rows", {.keep_changes_ms = kDay}));
    // Writes between the two calls were not recorded, so an earlier token must not go on.
    if (!token.empty()) {
      EXPECT_THAT(store_->ReadChanges("rows", token, {}), FailsWith(kGone, "from"));
    }
    token = Now("rows");
    ASSERT_OK_AND_ASSIGN(replica, Replica::Of(*store_, "rows"));
    ASSERT_OK(replica.Follow(*store_, "rows", token));
  }
  done = true;
  for (std::thread& writer : writers) writer.join();
  ASSERT_OK(replica.Follow(*store_, "rows", token));
  ASSERT_OK_AND_ASSIGN(const Replica whole, Replica::Of(*store_, "rows"));
  EXPECT_EQ(replica, whole);
}

TEST_F(ChangesTest, AReplicaIsLikeTheDatasetAfterAnyHistory) {
  const uint64_t seed = testing::Seed("changes");
  testing::Random random(seed);
  std::map<std::string, Replica> replicas;
  std::map<std::string, std::string> tokens;
  for (int round = 0; round < 6; ++round) {
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&, mine = testing::Random(random.Next())]() mutable {
        std::vector<uint64_t> pins;
        for (int i = 0; i < 200; ++i) ChangeSomething(*store_, mine, pins);
      });
    }
    std::thread follower([&] {
      while (!done) {
        for (const char* dataset : {"rows", "pins", "boards"}) {
          ASSERT_OK(replicas[dataset].Follow(*store_, dataset, tokens[dataset], 7));
        }
      }
    });
    for (std::thread& thread : threads) thread.join();
    done = true;
    follower.join();
    for (const char* dataset : {"rows", "pins", "boards"}) {
      ASSERT_OK(replicas[dataset].Follow(*store_, dataset, tokens[dataset]));
      ASSERT_OK_AND_ASSIGN(const Replica whole, Replica::Of(*store_, dataset));
      ASSERT_EQ(replicas[dataset], whole) << dataset << " in round " << round;
    }
    if (random.OneIn(2)) Reopen();
  }
}

}  // namespace
}  // namespace kvstore
