#include "shardops/open.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "base/fail_point.h"
#include "shardops/fleet_check.h"
#include "shardops/status.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Shards are opened while a store serves.
namespace kvstore::testing {
namespace {

using shardops::NewShards;
using shardops::OpenShards;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OpenTest : public ::testing::Test {
 protected:
  OpenTest() : store_(pair_.OpenStore(dir_.path())) {
    EXPECT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects, .type = 7}));
  }
  ~OpenTest() override { SetFailPointHook(nullptr); }

  NewShards Range(uint32_t first, uint32_t last) const {
    return {first, last, {pair_.host_a(), pair_.host_b()}};
  }
  absl::Status Open(const NewShards& shards) { return TryOpen(shards).status(); }
  absl::StatusOr<shardops::Opened> TryOpen(const NewShards& shards) {
    return OpenShards(
        pair_.fleet(), shards, [&] { return Datasets(); }, nullptr);
  }
  absl::StatusOr<std::vector<DatasetSpec>> Datasets() { return store_->ListDatasets(); }
  /// Creates an object, and returns its shard: the upper bits of its ID.
  uint32_t NewObject() {
    const auto id = store_->CreateObject("pins", "{}", {});
    EXPECT_OK(id.status());
    return id.ok() ? static_cast<uint32_t>(*id >> 46) : 0;
  }

  const TempDir dir_;
  PairFleet pair_;
  std::unique_ptr<Router> store_;
};

TEST_F(OpenTest, FourThousandMoreWhileItServes) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> made{0};
  std::thread client([&] {
    while (!stop) {
      NewObject();
      ++made;
    }
  });
  ASSERT_OK(Open(Range(100, 100 + 4095)));
  EXPECT_TRUE(Eventually([&] { return NewObject() >= 100; }));
  stop = true;
  client.join();
  EXPECT_GT(made, 0u);
  // The slave may be behind for a while.
  std::string problem;
  EXPECT_TRUE(Eventually([&] {
    const auto found = shardops::CheckFleet(pair_.fleet(), *Datasets());
    EXPECT_OK(found.status());
    problem = found.ok() && !found->problems.empty() ? found->problems.front() : "";
    return problem.empty();
  })) << problem;
  const auto again = TryOpen(Range(100, 100 + 4095));
  ASSERT_OK(again.status());
  EXPECT_TRUE(again->already);
}

TEST_F(OpenTest, NewObjectsGoWhereTheWeightsSay) {
  ZooKeeper& zookeeper = pair_.fleet().zookeeper;
  ASSERT_OK(zookeeper.Create("/kvstore/shards/weights", R"([{"range": [0, 6], "weight": 0}])"));
  EXPECT_TRUE(Eventually([&] { return NewObject() == 7; }));
  // One object on shard 7 may be chance; twenty in a row are not.
  EXPECT_TRUE(Eventually([&] {
    for (int i = 0; i < 20; ++i) {
      if (NewObject() != 7) return false;
    }
    return true;
  }));
  ASSERT_OK(zookeeper.Set("/kvstore/shards/weights", R"([{"range": [0, 7], "weight": 0}])", 0));
  EXPECT_TRUE(Eventually(
      [&] { return absl::IsFailedPrecondition(store_->CreateObject("pins", "{}", {}).status()); }));
}

TEST_F(OpenTest, WhatWillNotDoIsRefusedAndNothingChanges) {
  EXPECT_THAT(Open(Range(7, 9)), FailsWith(absl::StatusCode::kFailedPrecondition, "has shards of 0-7"));
  EXPECT_THAT(Open(Range(9, 8)), FailsWith(absl::StatusCode::kInvalidArgument, "is reversed"));
  EXPECT_THAT(Open(Range(9, 65536)), FailsWith(absl::StatusCode::kInvalidArgument, "goes beyond 65535"));
  pair_.b().Run("STOP SLAVE");
  EXPECT_THAT(Open(Range(8, 9)), FailsWith(absl::StatusCode::kFailedPrecondition, "is not connected"));
  EXPECT_EQ(pair_.a().Run("SHOW DATABASES LIKE 'db00008'"), "");
  pair_.b().Run("START SLAVE");
  EXPECT_TRUE(Eventually([&] { return Open(Range(8, 9)).ok(); }));
}

struct Died {};

TEST_F(OpenTest, StoppedAtAnyStepItIsGivenAgain) {
  uint32_t first = 8;
  for (const char* const point : {"open.made", "open.published"}) {
    SetFailPointHook([&](std::string_view name) {
      if (name == point) throw Died();
    });
    EXPECT_THROW(EXPECT_OK(Open(Range(first, first))), Died);
    SetFailPointHook(nullptr);
    if (std::string_view(point) == "open.made") {
      // The check says how to go on, once, whatever the slave has by now.
      EXPECT_THAT(
          shardops::CheckFleet(pair_.fleet(), *Datasets())->problems,
          ElementsAre(HasSubstr(fmt::format("kv shards open --range {0}-{0} --master {1} --slave {2}", first,
                                            pair_.host_a().ToString(), pair_.host_b().ToString()))));
    }
    EXPECT_OK(Open(Range(first, first)));
    ++first;
  }
  EXPECT_TRUE(shardops::CheckFleet(pair_.fleet(), *Datasets())->problems.empty());
}

TEST_F(OpenTest, TablesThatNoCallHasNeededAreNeitherMadeNorMissed) {
  pair_.MakeTablesOnFirstUse();
  const TempDir dir;
  const auto store = pair_.OpenStore(dir.path());
  ASSERT_OK(store->CreateDataset({.name = "boards", .shape = Shape::kObjects, .type = 5}));
  const shardops::ReadDatasets datasets = [&] { return store->ListDatasets(); };
  ASSERT_OK(shardops::OpenShards(pair_.fleet(), Range(8, 9), datasets, nullptr));
  EXPECT_EQ(pair_.a().Run("SHOW TABLES IN db00008"), "");
  const auto problems = [&] { return shardops::CheckFleet(pair_.fleet(), *datasets())->problems; };
  EXPECT_TRUE(Eventually([&] { return problems().empty(); })) << ::testing::PrintToString(problems());
  const auto made = [&] { return store->CreateObject("boards", "{}", {.shard = 8}).ok(); };
  EXPECT_TRUE(Eventually(made)) << "once the store has the new map";
  EXPECT_TRUE(Eventually([&] { return problems().empty(); })) << ::testing::PrintToString(problems());
  pair_.a().Run("DROP TABLE db00008.boards");
  EXPECT_THAT(problems(), Contains(HasSubstr("table db00008.boards is missing: kv shards init makes it")));
}

constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

TEST_F(OpenTest, ItIsRefusedWhileADatasetOfTheSpaceMigratesFromItsCreationOn) {
  ASSERT_OK(store_->CreateDataset({.name = "events"}));
  const auto begin = [&](const std::string& dataset) {
    const DatasetSpec here = *store_->GetDataset(dataset);
    DatasetSpec there = here;
    there.backend = "rocksdb";
    return store_->keeper().ledger().Begin(store_->keeper().MigrationOf(here, there));
  };
  ASSERT_OK_AND_ASSIGN(Held rows, begin("events"));
  ASSERT_OK_AND_ASSIGN(Held objects, begin("pins"));
  const absl::Status refused = Open(Range(8, 9));
  EXPECT_THAT(refused,
              FailsWith(kRefused, "open shards db 8-9: cannot begin now: 'migrate dataset pins', of "));
  EXPECT_THAT(refused, FailsWith(kRefused, "kv migrate cancel pins"));
  EXPECT_EQ(pair_.a().Run("SHOW DATABASES LIKE 'db00008'"), "");
  ASSERT_OK(objects.End());
  // Rows are on mod shards.
  EXPECT_OK(Open(Range(8, 9)));
  ASSERT_OK(rows.End());
}

TEST_F(OpenTest, WhatOneOperatorIsAtNobodyElseDoes) {
  bool reached = false;
  SetFailPointHook([&](std::string_view name) {
    if (name != "open.made" || std::exchange(reached, true)) return;
    EXPECT_THAT(Open(Range(9, 10)), FailsWith(kRefused, "'open shards db 8-9', of "));
    EXPECT_THAT(store_->CreateDataset({.name = "boards", .shape = Shape::kObjects}),
                FailsWith(kRefused, "create dataset boards: cannot begin now: 'open shards db 8-9', of "));
    EXPECT_OK(store_->CreateDataset({.name = "events"})) << "rows are on mod shards";
    EXPECT_THAT(shardops::Promote(pair_.fleet(), pair_.host_b(), {}),
                FailsWith(kRefused, "'open shards db 8-9'"));
  });
  ASSERT_OK(Open(Range(8, 9)));
  SetFailPointHook(nullptr);
  EXPECT_TRUE(reached);
  EXPECT_OK(store_->CreateDataset({.name = "boards", .shape = Shape::kObjects}));
  EXPECT_TRUE(pair_.fleet().ledger->List()->empty());
  std::string problems;
  // The slave applies the last changes a little later.
  EXPECT_TRUE(Eventually([&] {
    const auto found = shardops::CheckFleet(pair_.fleet(), *Datasets());
    problems = fmt::format("{}", fmt::join(found->problems, "\n"));
    return found->problems.empty();
  })) << problems;
}

TEST_F(OpenTest, WhoHasLostItsClaimsPublishesNothing) {
  SetFailPointHook([&](std::string_view name) {
    if (name != "open.made") return;
    const auto held = pair_.fleet().ledger->List();
    ASSERT_EQ(held->size(), 1u);
    EXPECT_OK(pair_.fleet().ledger->Release(held->front().id, /*force=*/true).status());
  });
  EXPECT_THAT(Open(Range(8, 9)), FailsWith(absl::StatusCode::kAborted, "is not held any more"));
  const auto maps = shardops::Maps::Load(pair_.fleet().zookeeper, pair_.fleet().root);
  EXPECT_EQ(maps->all()[0].map.open_shards(), 8u);
  SetFailPointHook(nullptr);
  EXPECT_OK(Open(Range(8, 9)));
}

TEST_F(OpenTest, AMasterThatIsReplacedBehindItIsNotWaitedForAsASlave) {
  SetFailPointHook([&](std::string_view name) {
    if (name != "open.published") return;
    SetFailPointHook(nullptr);
    const auto held = pair_.fleet().ledger->List();
    ASSERT_EQ(held->size(), 1u);
    // An emergency promotion releases claims like this.
    EXPECT_OK(pair_.fleet().ledger->Release(held->front().id, /*force=*/true).status());
    EXPECT_OK(shardops::Promote(pair_.fleet(), pair_.host_b(), {}).status());
    // From now on the old master's transactions come from the new one, which applies nothing any more.
    EXPECT_TRUE(Eventually([&] { return store_->CreateObject("pins", "{}", {}).ok(); }));
  });
  EXPECT_OK(Open(Range(8, 9)));
}

TEST_F(OpenTest, ASlaveThatDoesNotReplicateIsNotWaitedForForMinutes) {
  SetFailPointHook([&](std::string_view name) {
    if (name != "open.published") return;
    CutOffSlave(pair_.a(), pair_.b());
    pair_.a().Run("CREATE DATABASE what_the_slave_has_not");
  });
  const absl::Status opened = Open(Range(8, 9));
  SetFailPointHook(nullptr);
  EXPECT_THAT(opened, FailsWith(absl::StatusCode::kUnavailable, "does not replicate"));
  EXPECT_THAT(opened, FailsWith(absl::StatusCode::kUnavailable, "then run the command again"));
  pair_.b().Run("START SLAVE IO_THREAD");
  // It connects in its own time.
  EXPECT_TRUE(Eventually([&] { return Open(Range(8, 9)).ok(); }));
}

TEST_F(OpenTest, AMapIsNotChangedOnAnOldViewOfTheOther) {
  shardops::FleetOperator& fleet = pair_.fleet();
  ASSERT_OK_AND_ASSIGN(const Held held, fleet.ledger->Begin({.what = "move shards mod 0-0"}));
  const shardops::Pair elsewhere = {{"127.0.0.1", 1}, {"127.0.0.1", 2}};
  const auto give = [&](const shardops::Maps& maps) {
    return maps.Assign(*fleet.ledger, held, ShardSpace::kMod, 0, 0, elsewhere);
  };
  const auto old = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  ASSERT_OK(old.status());
  ASSERT_EQ(old->all().size(), 2u);
  ASSERT_OK(Open(Range(8, 9)));
  EXPECT_THAT(give(*old), FailsWith(kRefused, ""));
  const auto now = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  ASSERT_OK(now.status());
  EXPECT_OK(give(*now));
  // The map of ID shards, which changes meanwhile, does not have that pair.
  const shardops::Pair turned = {elsewhere.slave, elsewhere.master};
  const auto moved = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  ASSERT_OK(moved.status());
  ASSERT_OK(Open(Range(10, 11)));
  EXPECT_THAT(moved->Replace(*fleet.ledger, held, elsewhere, turned), FailsWith(kRefused, ""));
}

TEST_F(OpenTest, TwoOperatorsDoNotOverwriteEachOther) {
  bool other = false;
  SetFailPointHook([&](std::string_view name) {
    if (name != "open.made" || std::exchange(other, true)) return;
    EXPECT_OK(Open(Range(20, 21)));
  });
  ASSERT_OK(Open(Range(8, 9)));
  const auto maps = shardops::Maps::Load(pair_.fleet().zookeeper, pair_.fleet().root);
  ASSERT_OK(maps.status());
  EXPECT_EQ(maps->all()[0].map.open_shards(), 12u);
}

}  // namespace
}  // namespace kvstore::testing
