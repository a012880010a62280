#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>

#include "base/fail_point.h"
#include "router/router.h"
#include "shardops/fleet_check.h"
#include "shardops/maps.h"
#include "shardops/move.h"
#include "shardops/status.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

inline constexpr shardops::MoveRange kRows{.space = ShardSpace::kMod, .first = 0, .last = 3};
inline constexpr shardops::MoveRange kIds{.space = ShardSpace::kId, .first = 4, .last = 7};

/// Is thrown at a fail point, as if the process had died there.
struct Died {};

/// Two pairs of servers, with a store on the first one, and three datasets of different shapes.
class MoveTest : public ::testing::Test {
 protected:
  MoveTest() : store_(first_.OpenStore(dir_.path())) {
    EXPECT_OK(store_->CreateDataset({.name = "events"}));
    EXPECT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects, .type = 7}));
    EXPECT_OK(store_->CreateDataset({.name = "links", .shape = Shape::kMappings}));
  }
  ~MoveTest() override { SetFailPointHook(nullptr); }

  absl::Status Move(const shardops::MoveRange& range, const shardops::Pair& to,
                    const shardops::MoveOptions& options = {}) {
    return shardops::MoveShards(first_.fleet(), range, to, options).status();
  }
  /// Moves shards to the second pair, however slow the disk is.
  absl::Status MoveThere(const shardops::MoveRange& range) {
    return Move(range, second_.hosts(), {.hold_writes = true});
  }
  /// Prepares MySQL servers for moves under load: a new home that flushed its logs for each transaction would
  /// apply half as fast as the clients of a test write. The old one must, or its shards do not move.
  static void PrepareForLoad(MariaDbServer& from, MariaDbServer& to) {
    if (!OnMySql()) return;
    from.Run("SET GLOBAL sync_binlog = 1, innodb_flush_log_at_trx_commit = 1");
    to.Run("SET GLOBAL sync_binlog = 0, innodb_flush_log_at_trx_commit = 2");
  }
  shardops::Pair HomeOf(const shardops::MoveRange& range) {
    return *shardops::Maps::Load(first_.fleet().zookeeper, first_.fleet().root)
                ->PairOf(range.space, range.first);
  }
  /// Returns the databases of shards on a server, including those that have moved away.
  static std::string Databases(const MariaDbServer& server, const std::string& like) {
    return server.Run("SHOW DATABASES LIKE '" + like + "'");
  }
  /// Returns the names of the channels by which shards are copied to a server, each in a line.
  static std::string Channels(const MariaDbServer& server) {
    if (OnMySql()) {
      return server.Run(
          "SELECT channel_name FROM performance_schema.replication_connection_configuration WHERE "
          "channel_name <> ''");
    }
    // The first two columns are the name of a connection and what its applying thread does.
    std::string names;
    std::istringstream rows(server.Run("SHOW ALL SLAVES STATUS"));
    for (std::string row; std::getline(rows, row);) {
      if (const size_t end = row.find('\t'); end > 0) names += row.substr(0, end) + "\n";
    }
    return names;
  }
  void ExpectInOrder() {
    // Slaves may still be applying the last changes.
    EXPECT_TRUE(Eventually([&] {
      const auto found = shardops::CheckFleet(first_.fleet(), *store_->ListDatasets());
      return found.ok() && found->problems.empty();
    })) << shardops::CheckFleet(first_.fleet(), *store_->ListDatasets())->problems.front();
  }

  const TempDir dir_;
  PairFleet first_;
  ServerPair second_{2};
  std::unique_ptr<Router> store_;
};

}  // namespace kvstore::testing
