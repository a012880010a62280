#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shardops/move.h"
#include "shardops/replace.h"
#include "shardops/skipped_statements.h"
#include "shardops/status.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// A fleet of MySQL servers: what is not possible on them is refused before anything changes, and so are
/// pairs of two engines. Runs on MySQL only (./dev test --mysql9).
namespace kvstore::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
constexpr char kSameEngine[] = "both hosts of a pair must have the same engine";

class EnginesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!OnMySql()) GTEST_SKIP() << "needs MySQL servers: ./dev test --mysql9";
  }
  std::vector<std::string> Problems() {
    auto reports = shardops::InspectFleet(pair_.fleet());
    EXPECT_OK(reports.status());
    std::vector<std::string> all;
    for (const auto& report : *reports) all.insert(all.end(), report.problems.begin(), report.problems.end());
    return all;
  }
  void ExpectInOrder() {
    EXPECT_TRUE(Eventually([&] { return Problems().empty(); })) << ::testing::PrintToString(Problems());
    EXPECT_EQ(pair_.Master(), pair_.host_a());
  }
  /// Names a host the slave of the pair in both maps.
  void NameSlave(const Host& slave) {
    auto& zookeeper = pair_.fleet().zookeeper;
    const auto maps = shardops::Maps::Load(zookeeper, pair_.fleet().root);
    ASSERT_OK(maps);
    for (const shardops::StoredMap& stored : maps->all()) {
      std::vector<ShardRange> ranges(stored.map.ranges().begin(), stored.map.ranges().end());
      for (ShardRange& range : ranges) range.slave = slave;
      ASSERT_OK(zookeeper.Set(stored.path, ShardMap::Create(std::move(ranges))->ToJson(), stored.version));
    }
  }

  PairFleet pair_;
};

TEST_F(EnginesTest, ShardsDoNotMoveToServersOfTheOtherEngine) {
  const MariaDbServer master(ServerPair::Arguments(8, 9, {}), /*mysql=*/false);
  const MariaDbServer slave(ServerPair::Arguments(9, 9, {}), /*mysql=*/false);
  const shardops::MoveRange range{.space = ShardSpace::kMod, .first = 0, .last = 3};
  const shardops::Pair there{{"127.0.0.1", master.port()}, {"127.0.0.1", slave.port()}};
  EXPECT_THAT(shardops::MoveShards(pair_.fleet(), range, there, {}),
              FailsWith(kRefused, "shards move between pairs of the same engine only"));
  EXPECT_EQ(master.Run("SHOW DATABASES LIKE 'mod%'"), "");
  EXPECT_THAT(*pair_.fleet().ledger->List(), IsEmpty());
  ExpectInOrder();
}

TEST_F(EnginesTest, WhatChannelsSkipIsRunAtTheSourceAndItsSlaveAndNotWithoutTheTarget) {
  ServerPair second(2);
  ASSERT_OK_AND_ASSIGN(const auto source,
                       shardops::HostAdmin::OpenClaimed(pair_.host_a(), pair_.fleet().access));
  ASSERT_OK_AND_ASSIGN(const auto target,
                       shardops::HostAdmin::OpenClaimed(second.host_a(), pair_.fleet().access));
  shardops::SkippedStatements skipped(*source, target.get());
  const auto run = [&](const std::string& statement) {
    return source->WithConnection(
        [&](mysql::Connection& connection) { return skipped.Run(connection, {statement}); });
  };
  const auto skips = [&](MariaDbServer& server, int number) {
    return server.Run(fmt::format("SELECT GTID_SUBSET('{}:kvstore_move:{}', @@GLOBAL.gtid_executed)",
                                  pair_.a().Run("SELECT @@server_uuid").substr(0, 36), number)) == "1\n";
  };
  ASSERT_OK(run("CREATE DATABASE db00901"));
  EXPECT_TRUE(skips(second.a(), 1));
  EXPECT_TRUE(Eventually([&] { return skips(second.b(), 1) && skips(pair_.b(), 1); }));
  EXPECT_EQ(pair_.b().Run("SHOW DATABASES LIKE 'db009%'"), "db00901\n");
  EXPECT_EQ(second.a().Run("SHOW DATABASES LIKE 'db009%'"), "");
  // A statement that the source refuses leaves its number to the next one.
  EXPECT_FALSE(run("CREATE DATABASE db00901").ok());
  ASSERT_OK(run("CREATE DATABASE db00902"));
  EXPECT_TRUE(skips(pair_.a(), 2));
  EXPECT_FALSE(skips(second.a(), 3));
  // Statements for which the target was prepared run while it is down, and no others do.
  ASSERT_OK(skipped.Reserve(2));
  EXPECT_TRUE(skips(second.a(), 4));
  second.a().Kill();
  ASSERT_OK(run("CREATE DATABASE db00903"));
  ASSERT_OK(run("CREATE DATABASE db00904"));
  EXPECT_FALSE(run("CREATE DATABASE db00905").ok());
  EXPECT_EQ(pair_.a().Run("SHOW DATABASES LIKE 'db009%'"), "db00901\ndb00902\ndb00903\ndb00904\n");
  for (const char* const name : {"db00901", "db00902", "db00903", "db00904"}) {
    pair_.a().Run(std::string("DROP DATABASE ") + name);
  }
  ExpectInOrder();
}

TEST_F(EnginesTest, AHostOfTheOtherEngineBecomesNoSlave) {
  const MariaDbServer other(ServerPair::Arguments(9, 9, {}), /*mysql=*/false);
  const Host host{"127.0.0.1", other.port()};
  EXPECT_THAT(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.by = host}), FailsWith(kRefused, kSameEngine));
  ExpectInOrder();
  // Neither if a map says that it is one.
  NameSlave(host);
  EXPECT_THAT(Problems(), Contains(HasSubstr("the pair needs two servers of the same engine")));
  for (const bool dry_run : {true, false}) {
    for (const Host& next : {pair_.host_a(), host}) {
      EXPECT_THAT(Promote(pair_.fleet(), next, {.dry_run = dry_run}), FailsWith(kRefused, kSameEngine));
    }
  }
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "0\n");
  EXPECT_EQ(other.Run("SHOW SLAVE STATUS"), "");
  NameSlave(pair_.host_b());
  ExpectInOrder();
}

TEST_F(EnginesTest, AHostThatCannotBeCopiedToIsRefusedAndTheSlaveGoesOn) {
  const MariaDbServer third(ServerPair::Arguments(9, 9, {}));
  const auto as_administrator = [&](const std::string& sql) {
    third.Run("SET GLOBAL super_read_only = OFF; " + sql + "; SET GLOBAL super_read_only = ON");
  };
  as_administrator("UNINSTALL PLUGIN clone");
  EXPECT_THAT(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.by = Host{"127.0.0.1", third.port()}}),
              FailsWith(kRefused, "lacks the plugin clone"));
  ExpectInOrder();
  // Without the right to copy, the server refuses; what the host has stays, and the command can be repeated.
  as_administrator("INSTALL PLUGIN clone SONAME 'mysql_clone.so'");
  pair_.a().Run("REVOKE BACKUP_ADMIN ON *.* FROM repl@'127.0.0.1'");
  const Host by{"127.0.0.1", third.port()};
  EXPECT_THAT(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.by = by}).message(), HasSubstr("BACKUP_ADMIN"));
  EXPECT_EQ(third.Run("SELECT @@super_read_only"), "1\n");
  ExpectInOrder();
  pair_.a().Run("GRANT BACKUP_ADMIN ON *.* TO repl@'127.0.0.1'");
  EXPECT_OK(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.by = by}));
  EXPECT_EQ(pair_.Master(), pair_.host_a());
}

TEST_F(EnginesTest, AServerWithoutThePluginsOfSemiSyncIsNamedWithWhatItNeeds) {
  const MariaDbServer bare({"--server-id=9"});
  EXPECT_THAT(shardops::HostAdmin::Open({"127.0.0.1", bare.port()}, pair_.fleet().access).status(),
              FailsWith(kRefused, "plugin_load_add = 'semisync_source.so;semisync_replica.so'"));
}

}  // namespace
}  // namespace kvstore::testing
