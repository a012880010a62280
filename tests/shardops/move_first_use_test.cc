#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "tests/shardops/move_fixture.h"

/// Shards move of datasets whose tables are made when a call needs them first.
namespace kvstore::testing {
namespace {

class MoveOnFirstUseTest : public MoveTest {
 protected:
  MoveOnFirstUseTest() {
    first_.MakeTablesOnFirstUse();
    boards_ = first_.OpenStore(other_dir_.path());
    EXPECT_OK(boards_->CreateDataset({.name = "boards", .shape = Shape::kObjects, .type = 9}));
  }
  absl::StatusOr<uint64_t> CreateOn(uint32_t shard) {
    return boards_->CreateObject("boards", "{}", {.shard = shard});
  }

  const TempDir other_dir_;
  std::unique_ptr<Router> boards_;
};

TEST_F(MoveOnFirstUseTest, CallsMayNeedTablesAtAnyStepOfAMove) {
  // Whoever makes this table is cut short, and leaves it under its first name.
  SetFailPointHook([](std::string_view name) {
    if (name == "first_use.made") throw Died();
  });
  EXPECT_THROW(CreateOn(5).IgnoreError(), Died);
  SetFailPointHook(nullptr);
  std::atomic<bool> stop{false};
  std::set<uint64_t> made;
  std::thread client([&] {
    // Each table is needed first at another time of the move.
    for (uint32_t shard = 0; !stop; shard = (shard + 1) % PairFleet::kShards) {
      if (shard == 5) continue;
      if (const auto id = CreateOn(shard); id.ok()) made.insert(*id);
    }
  });
  const auto datasets = [&] { return boards_->ListDatasets(); };
  const absl::Status moved = Move(kIds, second_.hosts(), {.hold_writes = true, .datasets = datasets});
  stop = true;
  client.join();
  ASSERT_OK(moved);
  EXPECT_EQ(HomeOf(kIds).master, second_.host_a());
  for (const uint32_t shard : {4U, 5U, 6U, 7U}) {
    const auto id = CreateOn(shard);
    ASSERT_OK(id) << shard;
    made.insert(*id);
  }
  for (const uint64_t id : made) EXPECT_OK(boards_->GetObject("boards", id, {})) << id;
  EXPECT_EQ(second_.a().Run("SHOW TABLES IN db00005 LIKE 'boards%'"), "boards\n");
}

TEST_F(MoveOnFirstUseTest, AShardWithoutTablesGoesBackOnceTheOldOnesAreRemoved) {
  ASSERT_OK(CreateOn(4));
  ASSERT_OK(MoveThere(kIds));
  for (const char* const name : {"pins", "links"}) ASSERT_OK(store_->DropDataset(name, {}));
  EXPECT_THAT(Move(kIds, first_.hosts(), {.hold_writes = true}),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        "and the shard has no table now: kv shards move finish"));
  ASSERT_OK(shardops::FinishMove(first_.fleet(), kIds));
  ASSERT_OK(Move(kIds, first_.hosts(), {.hold_writes = true}));
  EXPECT_OK(CreateOn(4));
  EXPECT_OK(CreateOn(6));
}

}  // namespace
}  // namespace kvstore::testing
