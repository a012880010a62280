#include "shardops/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "shardmap/nodes.h"
#include "shardops/fleet_check.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Tests that problems of the hosts of a fleet are found and reported.
namespace kvstore::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class StatusTest : public ::testing::Test {
 protected:
  std::vector<std::string> Found(const std::vector<DatasetSpec>& datasets = {}) {
    auto found = shardops::CheckFleet(pair_.fleet(), datasets);
    EXPECT_OK(found.status());
    return found.ok() ? std::move(found->problems) : std::vector<std::string>();
  }
  /// Expects that a problem with this text is found soon.
  void Finds(const std::string& text) {
    EXPECT_TRUE(Eventually([&] {
      const auto found = Found();
      return std::any_of(found.begin(), found.end(),
                         [&](const std::string& one) { return one.find(text) != std::string::npos; });
    })) << text;
  }
  void IsWell() {
    EXPECT_TRUE(Eventually([&] { return Found().empty(); })) << ::testing::PrintToString(Found());
  }

  PairFleet pair_;
};

TEST_F(StatusTest, AWellFleetHasNoProblems) {
  IsWell();
  const auto reports = shardops::InspectFleet(pair_.fleet());
  ASSERT_OK(reports.status());
  ASSERT_EQ(reports->size(), 2u);
  EXPECT_EQ((*reports)[0].host, pair_.host_a());
  EXPECT_TRUE((*reports)[0].master);
  EXPECT_EQ((*reports)[0].shards, "db 0-7, mod 0-7");
  EXPECT_TRUE((*reports)[0].state->semi_sync_active);
  EXPECT_EQ((*reports)[1].state->following->master, pair_.host_a());
  EXPECT_TRUE((*reports)[1].state->read_only);
}

TEST_F(StatusTest, TroublesAreNamedWithWhatToDo) {
  pair_.b().Run("STOP SLAVE SQL_THREAD");
  Finds("does not apply");
  pair_.b().Run("START SLAVE SQL_THREAD; SET GLOBAL read_only = OFF");
  Finds("takes writes: kv shards fence " + pair_.host_b().ToString());
  pair_.b().Run("SET GLOBAL read_only = ON");
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_timeout = 10000");
  Finds("what is lost is not known");
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_timeout = 4000000, read_only = ON");
  Finds("read-only: kv shards promote " + pair_.host_a().ToString());
  pair_.a().Run("SET GLOBAL read_only = OFF");
  IsWell();
  pair_.b().Run("STOP SLAVE; RESET SLAVE ALL");
  Finds("follows nobody: kv shards promote " + pair_.host_a().ToString());
  // The command that the problem proposes puts the fleet in order.
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_a(), {}).status());
  IsWell();
  pair_.a().Kill();
  Finds("kv shards promote " + pair_.host_b().ToString() + " --emergency");
}

/// As by the defaults of MySQL 9: after ten minutes its slave would no longer count as semi-synchronous, so
/// that nobody knew what it lacks.
TEST_F(StatusTest, ASlaveThatGivesItsMasterUpIsNamedWithWhatToDo) {
  if (!OnMySql()) GTEST_SKIP() << "needs MySQL servers: ./dev test --mysql9";
  pair_.b().Run(
      "STOP REPLICA IO_THREAD; CHANGE REPLICATION SOURCE TO SOURCE_CONNECT_RETRY = 60, SOURCE_RETRY_COUNT = "
      "10; START REPLICA IO_THREAD");
  const std::string problem = "ends its replication when its master has been away for 600 s";
  Finds(problem);
  const auto found = Found();
  const auto named = std::find_if(found.begin(), found.end(), [&](const std::string& one) {
    return one.find(problem) != std::string::npos;
  });
  ASSERT_NE(named, found.end());
  const size_t begin = named->find("STOP REPLICA");
  const size_t end = named->find(" there", begin);
  ASSERT_NE(end, std::string::npos) << *named;
  pair_.b().Run(named->substr(begin, end - begin));
  IsWell();
}

TEST_F(StatusTest, ASlaveWithTransactionsOfItsOwnIsNamed) {
  if (!OnMySql()) GTEST_SKIP() << "needs MySQL servers: ./dev test --mysql9";
  IsWell();
  pair_.b().Run(
      "SET GLOBAL super_read_only = OFF; CREATE DATABASE of_its_own; SET GLOBAL super_read_only = ON");
  Finds("has 1 transactions of its own, which its master lacks");
  EXPECT_OK(shardops::Promote(pair_.fleet(), pair_.host_b(), {}));
  IsWell();
}

TEST_F(StatusTest, AMasterThatTheMapMistypedIsNotReplaced) {
  auto& zookeeper = pair_.fleet().zookeeper;
  const Host nobody{.name = "127.0.0.1", .port = 1};
  const auto maps = shardops::Maps::Load(zookeeper, pair_.fleet().root);
  ASSERT_OK(maps);
  for (const shardops::StoredMap& stored : maps->all()) {
    std::vector<ShardRange> ranges(stored.map.ranges().begin(), stored.map.ranges().end());
    for (ShardRange& range : ranges) range.master = nobody;
    ASSERT_OK(zookeeper.Set(stored.path, ShardMap::Create(std::move(ranges))->ToJson(), stored.version));
  }
  Finds("follows " + pair_.host_a().ToString() + ": is the map right? kv shards history");
  EXPECT_THAT(Found(), Not(Contains(HasSubstr("--emergency"))));
}

TEST_F(StatusTest, WhatRunsForLongIsNamed) {
  pair_.a().Run("CREATE TABLE db00003.locked (i INT); INSERT INTO db00003.locked VALUES (1)");
  // As when one table is locked and all connections wait for it.
  std::vector<std::thread> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back([this] {
      // The statement is killed below.
      try {
        pair_.a().Run("SELECT SLEEP(600) FROM `db00003`.`locked`");
      } catch (const std::exception&) {
      }
    });
  }
  Finds("4 statements run for 5 s or longer");
  Finds(", in db00003.locked (User sleep)");
  pair_.a().Run(pair_.a().Run(
      "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"));
  for (std::thread& thread : waiting) thread.join();
  IsWell();
}

TEST_F(StatusTest, WithoutZooKeeperItGoesByTheCopyOfTheMaps) {
  const TempDir dir;
  EXPECT_EQ(shardops::InspectFleetByCopies(pair_.fleet().access, dir.path()).status().code(),
            absl::StatusCode::kNotFound);
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    const auto node = pair_.fleet().zookeeper.Get(MapPath(pair_.fleet().root, space), /*watch=*/false);
    ASSERT_OK(node.status());
    ASSERT_OK(ReplaceFile(MapCopy(dir.path(), space), node->data));
  }
  IsWell();
  pair_.zookeeper().Stop();
  const auto well = shardops::InspectFleetByCopies(pair_.fleet().access, dir.path());
  ASSERT_OK(well.status());
  ASSERT_EQ(well->size(), 2u);
  for (const auto& report : *well) {
    EXPECT_THAT(report.problems, IsEmpty()) << report.host.ToString();
    EXPECT_EQ(report.shards, "db 0-7, mod 0-7");
  }
  pair_.a().Kill();
  const auto dead = shardops::InspectFleetByCopies(pair_.fleet().access, dir.path());
  ASSERT_OK(dead.status());
  EXPECT_EQ(dead->front().host, pair_.host_a());
  EXPECT_THAT(dead->front().problems, Contains(HasSubstr("nothing is promoted without ZooKeeper")));
  EXPECT_THAT(dead->front().problems, Not(Contains(HasSubstr("--emergency"))));
}

TEST_F(StatusTest, WhatTheMapsAndTheHostsDoNotHaveInCommonIsFound) {
  pair_.a().Run(
      "DROP DATABASE mod00003; CREATE DATABASE db00099; CREATE DATABASE mod00099; CREATE DATABASE dbx; "
      "CREATE "
      "TABLE db00000.pins (i INT)");
  const std::vector<DatasetSpec> datasets = {{.name = "pins", .shape = Shape::kObjects},
                                             {.name = "events", .shape = Shape::kRows}};
  EXPECT_TRUE(Eventually([&] { return Found(datasets).size() >= 2 * (1 + 7 + 7 + 1) + 1; }));
  const auto found = Found(datasets);
  EXPECT_THAT(found, Contains(HasSubstr("database mod00003 is missing")));
  EXPECT_THAT(found, Contains(HasSubstr("table db00001.pins is missing")));
  EXPECT_THAT(found, Not(Contains(HasSubstr("table db00000.pins is missing"))));
  EXPECT_THAT(found, Contains(HasSubstr("table mod00007.events is missing")));
  EXPECT_THAT(found, Contains(HasSubstr("database mod00099 is of a shard that the map has elsewhere")));
  EXPECT_THAT(found, Contains(HasSubstr("kv shards open --range 99-99")));
  EXPECT_THAT(found, Not(Contains(HasSubstr("dbx"))));
}

TEST_F(StatusTest, ShardsOfWhichTheSameIsSaidAreOnOneLine) {
  pair_.a().Run(
      "DROP DATABASE db00001; DROP DATABASE db00002; DROP DATABASE db00003; DROP DATABASE db00005; DROP "
      "DATABASE mod00004");
  const std::string ids = pair_.host_a().ToString() +
                          ": shards db 1-3, 5: their databases are missing: kv shards init makes them";
  const std::string mod =
      pair_.host_a().ToString() + ": database mod00004 is missing: kv shards init makes it";
  // The slave applies it a moment later.
  EXPECT_TRUE(Eventually([&] { return Found().size() == 2 * 5; })) << ::testing::PrintToString(Found());
  ASSERT_OK_AND_ASSIGN(const shardops::FleetCheck check, shardops::CheckFleet(pair_.fleet(), {}));
  EXPECT_THAT(check.lines, Contains(ids));
  EXPECT_THAT(check.lines, Contains(mod));
  EXPECT_EQ(check.lines.size(), 2u * 2u) << ::testing::PrintToString(check.lines);
  EXPECT_THAT(check.problems, Contains(HasSubstr("database db00002 is missing")));
  // The part of it that kv shards status finds.
  ASSERT_OK_AND_ASSIGN(const shardops::FleetCheck databases, shardops::CheckDatabases(pair_.fleet()));
  EXPECT_EQ(databases.lines, check.lines);
  EXPECT_THAT(databases.not_asked, IsEmpty());
}

TEST_F(StatusTest, DatabasesOfShardsThatAnOperationHasForItselfAreNotCompared) {
  pair_.a().Run("DROP DATABASE db00001; DROP DATABASE mod00002");
  EXPECT_TRUE(Eventually([&] { return Found().size() == 2 * 2; })) << ::testing::PrintToString(Found());
  const auto problems = [&] {
    const auto check = shardops::CheckDatabases(pair_.fleet());
    EXPECT_OK(check.status());
    return check.ok() ? check->problems.size() : 0;
  };
  EXPECT_EQ(problems(), 4u);
  {
    const auto moving = pair_.fleet().ledger->Begin(
        {.what = "move", .claims = {Claim::Homes(ShardSpace::kMod, 0, 3, ClaimMode::kExclusive)}});
    ASSERT_OK(moving.status());
    EXPECT_EQ(problems(), 2u) << "db00001 remains";
  }
  const auto copying = pair_.fleet().ledger->Begin(
      {.what = "copy", .claims = {Claim::Host(pair_.host_b().ToString(), ClaimMode::kExclusive)}});
  ASSERT_OK(copying.status());
  EXPECT_EQ(problems(), 2u) << "the master's remain";
}

TEST_F(StatusTest, HostsThatDoNotAnswerAreNamedAsNotAsked) {
  pair_.b().Kill();
  const auto check = shardops::CheckDatabases(pair_.fleet());
  ASSERT_OK(check.status());
  EXPECT_THAT(check->not_asked, ElementsAre(pair_.host_b()));
  EXPECT_THAT(check->problems, IsEmpty());
}

}  // namespace
}  // namespace kvstore::testing
