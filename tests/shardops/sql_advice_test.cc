#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "shardops/host.h"
#include "tests/shardops/advice_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// In each state in which the program proposes statements of SQL, an operator who knows nothing runs them on
/// the hosts for which they are proposed, and the commands that are proposed then. Afterwards the fleet must
/// be in order, and every acknowledged write must be there. The table in docs/operators.md lists the
/// statements; tests/cli/sql_advice_test.cc compares it with the sources.
namespace kvstore::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SqlAdvice, StatementsAreFoundInMessages) {
  const auto all = [](const std::string& text) {
    std::vector<std::string> found;
    for (const ProposedSql& one : SqlIn(text)) found.push_back(one.host + "> " + one.statement);
    return found;
  };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(all("127.0.0.1:7: follows 127.0.0.1:8: STOP SLAVE; RESET SLAVE ALL there, then kv shards ..."),
            (Strings{"127.0.0.1:7> STOP SLAVE; RESET SLAVE ALL"}));
  EXPECT_EQ(all("127.0.0.1:7: ... known. SET GLOBAL rpl_a = ON, rpl_b = 40, there and in its configuration"),
            (Strings{"127.0.0.1:7> SET GLOBAL rpl_a = ON, rpl_b = 40"}));
  EXPECT_EQ(all("127.0.0.1:7: is not applied: x\nMend that, START SLAVE SQL_THREAD there, and"),
            (Strings{"127.0.0.1:7> START SLAVE SQL_THREAD"}));
  EXPECT_EQ(all("127.0.0.1:7: STOP SLAVE; SET GLOBAL a_b = 'minimal'; START SLAVE, and in its"),
            (Strings{"127.0.0.1:7> STOP SLAVE; SET GLOBAL a_b = 'minimal'; START SLAVE"}));
  EXPECT_EQ(all("127.0.0.1:7: KILL 41 ends that one\n127.0.0.1:8: STOP ALL SLAVES there"),
            (Strings{"127.0.0.1:7> KILL 41", "127.0.0.1:8> STOP ALL SLAVES"}));
  EXPECT_EQ(all("127.0.0.1:7: rows: RENAME TABLE `a`.`b` TO `a`.`b_aside`"),
            (Strings{"127.0.0.1:7> RENAME TABLE `a`.`b` TO `a`.`b_aside`"}));
  EXPECT_EQ(all("127.0.0.1:7: kv shards fence 127.0.0.1:7"), Strings());
}

class SqlAdviceTest : public AdviceFixture {
 protected:
  SqlAdviceTest() { MakeDatasets(); }

  /// The arguments of a server that is in no pair.
  static std::vector<std::string> Arguments(int id) {
    return {"--log-bin=binlog",
            "--log-slave-updates",
            "--gtid-strict-mode=ON",
            "--gtid-domain-id=1",
            "--read-only=ON",
            "--init-rpl-role=SLAVE",
            "--sync-binlog=1",
            "--rpl-semi-sync-slave-enabled=ON",
            "--rpl-semi-sync-master-timeout=4000000",
            "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
            fmt::format("--server-id={}", id)};
  }
  /// Has a server replicate from the master, as a second semi-synchronous slave.
  void Attach(MariaDbServer& server) {
    server.Run(fmt::format(
        "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {}, master_user = 'repl', "
        "master_password = 'repl', master_use_gtid = slave_pos, master_connect_retry = 1; START SLAVE",
        Leader().port()));
    EXPECT_TRUE(Eventually(
        [&] { return Leader().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t2\n"); }));
  }
  /// Runs a command that must be refused, and what the refusal proposes in SQL; then the command must
  /// succeed.
  void RefusedThenRun(const std::vector<std::string>& arguments, const std::string& proposed) {
    SCOPED_TRACE(proposed);
    const Output refused = Kv(arguments);
    EXPECT_EQ(refused.code, 1) << refused.out;
    const std::vector<ProposedSql> sql = SqlIn(refused.out + refused.err);
    ASSERT_FALSE(sql.empty()) << refused.err;
    EXPECT_EQ(sql.front().statement, proposed) << refused.err;
    for (const ProposedSql& one : sql) RunSql(one);
    Output last;
    EXPECT_TRUE(Eventually([&] {
      last = Kv(arguments);
      return last.code == 0;
    })) << last.err;
  }
  /// Puts other maps into ZooKeeper, as somebody does by hand.
  void PutMaps(const Host& master, const Host& slave) {
    for (const char* const map : {"/shards/id", "/shards/mod"}) {
      const auto node = pair_.fleet().zookeeper.Get(pair_.fleet().root + map, /*watch=*/false);
      ASSERT_OK(node);
      ASSERT_OK(pair_.fleet().zookeeper.Set(
          pair_.fleet().root + map,
          fmt::format(R"([{{"range": [0, {}], "master": "{}", "slave": "{}"}}])", PairFleet::kShards - 1,
                      master.ToString(), slave.ToString()),
          node->version));
    }
  }
  void ExpectOrder() {
    EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
    Put();
    ExpectAll();
  }
};

TEST_F(SqlAdviceTest, AboutAMasterThatAcknowledgesAlone) {
  BreakAndFollowAdvice(
      "semi-synchronous replication is off",
      [this] { Leader().Run("SET GLOBAL rpl_semi_sync_master_enabled = OFF"); },
      "SET GLOBAL rpl_semi_sync_master_enabled = ON");
  BreakAndFollowAdvice(
      "it does not wait while its slave is away",
      [this] { Leader().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF"); },
      "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON");
  BreakAndFollowAdvice(
      "it does not wait for long", [this] { Leader().Run("SET GLOBAL rpl_semi_sync_master_timeout = 1000"); },
      "rpl_semi_sync_master_timeout = ");
}

TEST_F(SqlAdviceTest, AboutASlaveThatDoesNotApply) {
  BreakAndFollowAdvice(
      "its thread was stopped",
      [this] {
        Other().Run("STOP SLAVE SQL_THREAD");
        Put();
      },
      "START SLAVE SQL_THREAD");
  // The same, and the master dies: what has come in and is not applied must not be thrown away.
  EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
  Other().Run("STOP SLAVE SQL_THREAD");
  Put();
  Inspect();
  MariaDbServer& gone = Leader();
  const std::string other = Other().address();
  gone.Kill();
  RefusedThenRun({"shards", "promote", other, "--emergency"}, "START SLAVE SQL_THREAD");
  ExpectAll();
  gone.Start();
  FollowAdvice();
  ExpectOrder();
}

TEST_F(SqlAdviceTest, AboutAMasterThatFollowsItsSlave) {
  const Host first = pair_.Master();
  const Host second = first == pair_.host_a() ? pair_.host_b() : pair_.host_a();
  Run({"shards", "promote", second.ToString()});
  Put();
  PutMaps(first, second);
  // The worst moment to run the statement is while the other host still takes writes, and acknowledges them
  // alone.
  const Output refused = Kv({"shards", "promote", second.ToString()});
  EXPECT_EQ(refused.code, 1) << refused.out;
  EXPECT_THAT(CommandsIn(refused.err), Not(Contains(HasSubstr("--discard"))));
  Other().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
  Leader().Run("STOP SLAVE; RESET SLAVE ALL");
  Other().Run("INSERT INTO mod00000.events VALUES ('later', 'c', 1, 'v')");
  FollowAdvice();
  EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
  EXPECT_EQ(Leader().Run("SELECT value FROM mod00000.events WHERE row_key = 'later'"), "v\n");
  Put();
  ExpectAll();
}

TEST_F(SqlAdviceTest, AboutAMasterThatIsToLeadAndFollows) {
  const Host first = pair_.Master();
  const Host second = first == pair_.host_a() ? pair_.host_b() : pair_.host_a();
  Run({"shards", "promote", second.ToString()});
  Put();
  PutMaps(first, second);
  Run({"shards", "fence", second.ToString()});
  EXPECT_TRUE(Eventually([&] {
    const std::string position = "SELECT @@GLOBAL.gtid_current_pos";
    return Leader().Run(position) == Other().Run(position);
  }));
  RefusedThenRun({"shards", "promote", first.ToString()}, "STOP SLAVE; RESET SLAVE ALL");
  FollowAdvice();
  ExpectOrder();
}

TEST_F(SqlAdviceTest, AboutASecondSlave) {
  MariaDbServer third(Arguments(9));
  Attach(third);
  const std::string said = Inspect();
  EXPECT_THAT(said, HasSubstr("has 2 semi-synchronous slaves"));
  EXPECT_THAT(said, HasSubstr("SHOW FULL PROCESSLIST there names them (Binlog Dump), STOP SLAVE on all but " +
                              Other().address()));
  EXPECT_THAT(Leader().Run("SHOW FULL PROCESSLIST"), HasSubstr("Binlog Dump"));
  third.Run("STOP SLAVE");
  ExpectOrder();
}

TEST_F(SqlAdviceTest, AboutASlaveThatWasReplacedAndComesBack) {
  MariaDbServer next(Arguments(9));
  others_ = {&next};
  MariaDbServer& lost = Other();
  EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
  lost.Kill();
  const Output replaced = Kv({"shards", "replace-slave", lost.address(), "--by", next.address()});
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  const std::vector<ProposedSql> sql = SqlIn(replaced.out + replaced.err);
  ASSERT_EQ(sql.size(), 1u) << replaced.out;
  EXPECT_EQ(sql[0].statement, "STOP SLAVE; RESET SLAVE ALL");
  EXPECT_EQ(sql[0].host, lost.address());
  lost.Start();
  RunSql(sql[0]);
  Put();
  EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
  // The new slave has all.
  Leader().Kill();
  Run({"shards", "promote", next.address(), "--emergency"});
  ExpectAll();
}

TEST_F(SqlAdviceTest, AboutAnOperatorWhoIsGone) {
  std::thread holder([this] {
    try {
      Leader().Run(fmt::format("SELECT GET_LOCK('{}', 1); SELECT SLEEP(600)", shardops::kOperatorLock));
    } catch (const std::exception&) {
      // Its connection is ended.
    }
  });
  const std::string used = fmt::format("SELECT IS_USED_LOCK('{}') IS NOT NULL", shardops::kOperatorLock);
  EXPECT_TRUE(Eventually([&] { return Leader().Run(used) == "1\n"; }));
  const Output refused = Kv({"shards", "promote", Other().address()});
  EXPECT_EQ(refused.code, 1) << refused.out;
  const std::vector<ProposedSql> sql = SqlIn(refused.err);
  ASSERT_EQ(sql.size(), 1u) << refused.err;
  EXPECT_THAT(sql[0].statement, HasSubstr("KILL "));
  RunSql(sql[0]);
  holder.join();
  Run({"shards", "promote", Other().address()});
  ExpectOrder();
}

TEST_F(SqlAdviceTest, AboutStatementsThatRunForLong) {
  std::vector<std::thread> waiting;
  BreakAndFollowAdvice(
      "four statements run for long",
      [&] {
        for (int i = 0; i < 4; ++i) {
          waiting.emplace_back([this] {
            try {
              Leader().Run("SELECT SLEEP(600) FROM mod00000.events");
            } catch (const std::exception&) {
              // It is ended.
            }
          });
        }
      },
      "KILL ");
  Leader().Run(Leader().Run(
      "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"));
  for (std::thread& thread : waiting) thread.join();
}

TEST_F(SqlAdviceTest, AboutASlaveThatMayHaveTheOnlyCopy) {
  EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
  Leader().Run("SET SESSION sql_log_bin = OFF; DROP DATABASE mod00003");
  const std::string said = Inspect();
  EXPECT_THAT(said, HasSubstr("mod00003"));
  EXPECT_THAT(CommandsIn(said), Not(Contains(HasSubstr("--discard"))));
  for (const bool dry_run : {true, false}) {
    std::vector<std::string> arguments = {"shards", "replace-slave", Other().address(), "--discard"};
    if (dry_run) arguments.emplace_back("--dry-run");
    const Output refused = Kv(arguments);
    EXPECT_EQ(refused.code, 1) << refused.out;
    EXPECT_THAT(refused.err, HasSubstr("may have the only copy"));
  }
  EXPECT_NE(Other().Run("SELECT COUNT(*) FROM mod00003.events"), "0\n");
}

}  // namespace
}  // namespace kvstore::testing
