#include "shardops/maps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "catalog/zookeeper_ledger.h"
#include "coordination/zookeeper.h"
#include "shardops/map_history.h"
#include "tests/shardmap/large_maps.h"
#include "tests/support/status_matchers.h"
#include "tests/support/zookeeper_server.h"

/// The maps in ZooKeeper, without hosts.
namespace kvstore::testing {
namespace {

using shardops::Maps;
using shardops::Pair;

constexpr char kRoot[] = "/kvstore";

class MapsTest : public ::testing::Test {
 protected:
  /// Stores a map, and begins its history.
  void Store(ShardSpace space, const ShardMap& map) {
    EXPECT_OK(shardops::CreateMap(zookeeper_, kRoot, space, map.ToStored(), "a test"));
  }
  Maps Load() { return *Maps::Load(zookeeper_, kRoot); }
  Held Begin() { return *ledger_.Begin(Operation{.what = "a test"}); }
  size_t Kept(ShardSpace space) { return shardops::ReadHistory(zookeeper_, kRoot, space)->size(); }

  const ZooKeeperServer server_;
  ZooKeeper zookeeper_{{.servers = server_.address()}, nullptr};
  ZooKeeperLedger ledger_{zookeeper_, kRoot, "a test"};
};

TEST_F(MapsTest, ShardsThatMoveThereAndBackLeaveTheMapAsItWas) {
  const Pair one{{.name = "a"}, {.name = "b"}};
  const Pair other{{.name = "c"}, {.name = "d"}};
  const ShardMap before =
      *ShardMap::Create({{0, 99, one.master, one.slave}, {100, 199, other.master, other.slave}});
  Store(ShardSpace::kId, before);
  const auto assign = [&](uint32_t first, uint32_t last, const Pair& to) {
    const Held held = Begin();
    EXPECT_OK(Load().Assign(ledger_, held, ShardSpace::kId, first, last, to));
  };
  assign(40, 59, other);
  EXPECT_EQ(Load().all()[0].map.ranges().size(), 4u);
  assign(40, 59, one);
  EXPECT_TRUE(Load().all()[0].map == before);
  // To the pair of their neighbours, too.
  assign(60, 99, other);
  EXPECT_EQ(Load().all()[0].map.ranges().size(), 2u);
  assign(60, 99, one);
  EXPECT_TRUE(Load().all()[0].map == before);
}

TEST_F(MapsTest, AMapOfFullSizeIsChangedAndKeptInTheHistory) {
  const ShardMap full = FullSizeMap();
  Store(ShardSpace::kId, full);
  const Pair to{{.name = "new-master"}, {.name = "new-slave"}};
  {
    const Held held = Begin();
    EXPECT_OK(Load().Assign(ledger_, held, ShardSpace::kId, 1'000, 1'999, to));
  }
  EXPECT_EQ(Load().PairOf(ShardSpace::kId, 1'500), to);
  EXPECT_EQ(Load().all()[0].map.ranges().size(), 65'536u - 999u);
  EXPECT_EQ(Kept(ShardSpace::kId), 2u);
}

// Both maps twice would be beyond what ZooKeeper takes in a transaction.
TEST_F(MapsTest, TwoMapsOfFullSizeAreChangedAtOnceAndTheLatterIsNotKept) {
  const ShardMap full = FullSizeMap();
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) Store(space, full);
  const ShardRange& range = full.ranges()[7];
  const Pair after{{.name = "new-master"}, range.master};
  {
    const Held held = Begin();
    EXPECT_OK(Load().Replace(ledger_, held, {range.master, range.slave}, after));
  }
  const Maps maps = Load();
  EXPECT_EQ(maps.PairOf(ShardSpace::kId, 7), after);
  EXPECT_EQ(maps.PairOf(ShardSpace::kMod, 7), after);
  EXPECT_EQ(Kept(ShardSpace::kId) + Kept(ShardSpace::kMod), 3u);
  // The next change of a single map saves what nobody has saved.
  ASSERT_OK(shardops::PrepareHistory(zookeeper_, kRoot));
  EXPECT_EQ(Kept(ShardSpace::kId) + Kept(ShardSpace::kMod), 4u);
}

}  // namespace
}  // namespace kvstore::testing
