#include <gtest/gtest.h>

#include "shardops/maps.h"
#include "shardops/move.h"
#include "tests/migration/migrating_store.h"
#include "tests/shardops/pair.h"
#include "tests/support/random.h"
#include "tests/support/slow_disk.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Shards move between servers whose disks are slow, or full.
namespace kvstore::testing {
namespace {

using absl::StatusCode;
using shardops::CancelMove;
using shardops::MoveRange;
using shardops::MoveShards;
using shardops::Pair;

constexpr MoveRange kRows{.space = ShardSpace::kMod, .first = 0, .last = 3};

Pair HomeOf(PairFleet& fleet) {
  return *shardops::Maps::Load(fleet.fleet().zookeeper, fleet.fleet().root)->PairOf(ShardSpace::kMod, 0);
}

/// The source's clients write faster than the target applies, because they share flushes of the disk.
TEST(MoveDiskTest, ASourceThatIsTooFastIsHeldBack) {
  const SlowDisk slow;
  PairFleet first;
  ServerPair second(2);
  const TempDir dir;
  const auto store = first.OpenStore(dir.path());
  ASSERT_OK(store->CreateDataset({.name = "events"}));
  History history(Clients::kKeys);
  Clients clients(*store, "events", history, 8, Seed("held"));
  clients.Work(100);
  ASSERT_OK(MoveShards(first.fleet(), kRows, second.hosts(), {.hold_writes = true}).status());
  clients.Work(100);
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST(MoveDiskTest, AFullTargetIsSaidAndCancelled) {
  PairFleet first;
  ServerPair second(2, {"--innodb-file-per-table=1", "--innodb-log-file-size=8M", "--max-binlog-size=4M",
                        "--innodb-autoextend-increment=1"});
  const TempDir dir;
  const auto store = first.OpenStore(dir.path());
  ASSERT_OK(store->CreateDataset({.name = "events"}));
  // The table of one shard does not fit on the target. Its values are small, since the server itself crashes
  // with large ones on a full disk.
  first.a().Run(
      "USE mod00001; INSERT INTO events SELECT seq, 'c', 1, REPEAT(MD5(seq), 31) FROM seq_1_to_40000");
  second.a().LimitFiles(32 << 20);
  EXPECT_THAT(MoveShards(first.fleet(), kRows, second.hosts(), {}),
              FailsWith(StatusCode::kInternal, "mariadb: ERROR"));
  EXPECT_EQ(HomeOf(first), first.hosts());
  EXPECT_OK(CancelMove(first.fleet(), kRows));
  EXPECT_EQ(second.a().Run("SHOW DATABASES LIKE 'mod%'"), "");
  // With room on the disk the move succeeds.
  second.a().LimitFiles(0);
  EXPECT_OK(MoveShards(first.fleet(), kRows, second.hosts(), {}).status());
  EXPECT_EQ(HomeOf(first), second.hosts());
}

}  // namespace
}  // namespace kvstore::testing
