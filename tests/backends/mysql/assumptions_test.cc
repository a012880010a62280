#include <cppconn/exception.h>
#include <cppconn/resultset.h>
#include <cppconn/statement.h>
#include <fmt/format.h>
#include <mysql_driver.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/mysql/driver/connection.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/status_matchers.h"

/// Tests of what KVStore relies on, or works around, in MariaDB and in Connector/C++. If one of them fails
/// after an upgrade, the code that it names must be changed, or can be made simpler.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

std::unique_ptr<sql::Connection> ConnectTo(const MariaDbServer& server, sql::ConnectOptionsMap options = {}) {
  options["hostName"] = sql::SQLString("tcp://" + server.address());
  options["userName"] = sql::SQLString("root");
  return std::unique_ptr<sql::Connection>(sql::mysql::get_mysql_driver_instance()->connect(options));
}

std::unique_ptr<sql::Connection> Connect(const sql::ConnectOptionsMap& options = {}) {
  return ConnectTo(SharedFleet().server(0), options);
}

TEST(MariaDb, LosesRowsOfARangeThatEndsInADescendingPart) {
  KV_SKIP_ON_MYSQL("the fault of its optimiser");
  // This is why statements.cc says `ts + 0 >= ?`. The first answer lacks the cells of column ''.
  const std::string table =
      "CREATE OR REPLACE DATABASE pins; USE pins; CREATE TABLE r (a VARBINARY(9) NOT NULL, b VARBINARY(9) "
      "NOT NULL, "
      "ts BIGINT UNSIGNED NOT NULL, PRIMARY KEY (a, b, ts DESC)); INSERT INTO r VALUES ('r', '', 1), ('r', "
      "'x', 1);";
  const std::string select = "SELECT COUNT(*) FROM (SELECT * FROM r WHERE a >= 'r' AND b IN ('', 'x') AND ";
  MariaDbServer& server = SharedFleet().server(0);
  EXPECT_EQ(server.Run(table + select + "ts >= 0 ORDER BY a, b, ts DESC LIMIT 9) x"), "1\n");
  EXPECT_EQ(server.Run(table + select + "ts + 0 >= 0 ORDER BY a, b, ts DESC LIMIT 9) x"), "2\n");
  server.Run("DROP DATABASE pins");
}

TEST(MariaDb, RemembersAutoIncrementAcrossAKill) {
  // This is why no ID is given twice, even after the newest object was erased.
  MariaDbServer& server = SharedFleet().server(0);
  server.Run(
      "DROP DATABASE IF EXISTS pins; CREATE DATABASE pins; CREATE TABLE pins.o (id BIGINT UNSIGNED "
      "AUTO_INCREMENT PRIMARY KEY); "
      "INSERT INTO pins.o VALUES (), (), (); DELETE FROM pins.o");
  // A kill loses at most what was not written to the log, so the last statements are forced to it.
  server.Run(
      "SET GLOBAL innodb_flush_log_at_trx_commit = 1; INSERT INTO pins.o VALUES (); DELETE FROM pins.o");
  server.Kill();
  server.Start();
  EXPECT_EQ(server.Run("INSERT INTO pins.o VALUES (); SELECT id FROM pins.o; DROP DATABASE pins"), "5\n");
}

/// Writes 40 rows to a table on MyRocks whose trigger writes entries to a table on InnoDB. Returns how many
/// rows were invisible when their entries were visible.
///
/// snapshot  whether a snapshot of both engines is taken between the reads of the entry and the row.
int Unseen(const MariaDbServer& server, bool snapshot) {
  server.Run(
      "CREATE OR REPLACE TABLE pins.entries (id INT AUTO_INCREMENT PRIMARY KEY, k INT) ENGINE=InnoDB; "
      "CREATE OR REPLACE TABLE pins.r (k INT PRIMARY KEY) ENGINE=ROCKSDB; "
      "CREATE TRIGGER pins.t AFTER INSERT ON pins.r FOR EACH ROW INSERT INTO pins.entries (k) VALUES "
      "(NEW.k)");
  std::thread writer([&] {
    const auto connection = ConnectTo(server);
    const std::unique_ptr<sql::Statement> statement(connection->createStatement());
    for (int k = 0; k < 40; ++k) statement->execute("INSERT INTO pins.r VALUES (" + std::to_string(k) + ")");
  });
  const auto connection = ConnectTo(server);
  const std::unique_ptr<sql::Statement> statement(connection->createStatement());
  int unseen = 0;
  for (int seen = 0; seen < 40;) {
    const std::unique_ptr<sql::ResultSet> entry(
        statement->executeQuery("SELECT k FROM pins.entries WHERE k = " + std::to_string(seen)));
    if (!entry->next()) continue;
    if (snapshot) {
      statement->execute("START TRANSACTION WITH CONSISTENT SNAPSHOT");
      statement->execute("ROLLBACK");
    }
    const std::unique_ptr<sql::ResultSet> row(
        statement->executeQuery("SELECT 1 FROM pins.r WHERE k = " + std::to_string(seen)));
    if (!row->next()) ++unseen;
    ++seen;
  }
  writer.join();
  return unseen;
}

TEST(MariaDb, ShowsWhatATriggerWroteBeforeTheRowOfMyRocksButNotToASnapshotOfBothEngines) {
  KV_SKIP_ON_MYSQL("MySQL has no MyRocks");
  // This is why units.cc begins a snapshot between the reads of the dirty log and of the rows that it names.
  for (const std::vector<std::string>& log :
       {std::vector<std::string>{}, {"--log-bin", "--binlog-format=ROW"}}) {
    std::vector<std::string> arguments = {"--plugin-maturity=unknown", "--plugin-load-add=ha_rocksdb",
                                          kLittleMemoryForMyRocks};
    arguments.insert(arguments.end(), log.begin(), log.end());
    const MariaDbServer server(arguments);
    SlowDownMyRocks(server);
    EXPECT_EQ(Unseen(server, /*snapshot=*/true), 0) << "binary logs: " << log.size();
    EXPECT_GT(Unseen(server, /*snapshot=*/false), 0)
        << "the snapshot is not needed any more; binary logs: " << log.size();
  }
}

TEST(Connector, ConnectsInPlaintextThoughTlsIsEnforced) {
  // This is why Connection::Open asks for Ssl_cipher.
  KV_SKIP_ON_MYSQL("a MySQL server makes itself a certificate, and has TLS");
  if (SharedFleet().server(0).Run("SELECT @@have_ssl") == "YES\n") {
    GTEST_SKIP() << "a server of MariaDB 11.4 or later makes itself a certificate, and has TLS";
  }
  sql::ConnectOptionsMap options;
  options["sslEnforce"] = true;
  const auto connection = Connect(options);
  const std::unique_ptr<sql::Statement> statement(connection->createStatement());
  const std::unique_ptr<sql::ResultSet> cipher(statement->executeQuery("SHOW STATUS LIKE 'Ssl_cipher'"));
  ASSERT_TRUE(cipher->next());
  EXPECT_EQ(cipher->getString(2).asStdString(), "");
}

TEST(Connector, AResultThatIsCutOffIsAnError) {
  // This is why Rows::Next asks for errors. More rows than the sockets' buffers hold are under way.
  const std::string select =
      "SELECT REPEAT('x', 8000) FROM information_schema.collations a, information_schema.collations b";
  const auto options = mysql::MySqlOptions{.user = "root", .any_role = true};
  const auto connection = mysql::Connection::Open({"127.0.0.1", SharedFleet().server(0).port()}, options);
  ASSERT_OK(connection.status());
  for (const char* const remembered : {"64", "0"}) {
    (*connection)->Run(std::string("SET SESSION max_error_count = ") + remembered);
    const std::string id = [&] {
      mysql::Rows rows = (*connection)->Ask("SELECT CONNECTION_ID()");
      return rows.Next() ? rows.Bytes(1) : "";
    }();
    mysql::Rows rows = (*connection)->Stream(select);
    ASSERT_TRUE(rows.Next());
    SharedFleet().server(0).Run("KILL QUERY " + id);
    EXPECT_THROW(while (rows.Next()){}, sql::SQLException) << remembered;
  }
  // One that is whole ends, whatever failed before.
  mysql::Rows rows = (*connection)->Stream("SELECT 1 FROM information_schema.collations LIMIT 2");
  EXPECT_TRUE(rows.Next());
  EXPECT_TRUE(rows.Next());
  EXPECT_FALSE(rows.Next());
  EXPECT_FALSE(rows.Next());
}

TEST(Connector, AnOldResultReadsWhatANewExecutionFound) {
  // This is why Rows are destroyed before their statement runs again.
  const auto connection = Connect();
  const std::unique_ptr<sql::PreparedStatement> statement(connection->prepareStatement("SELECT ?"));
  statement->setString(1, "first");
  const std::unique_ptr<sql::ResultSet> first(statement->executeQuery());
  statement->setString(1, "second");
  const std::unique_ptr<sql::ResultSet> second(statement->executeQuery());
  ASSERT_TRUE(first->next());
  EXPECT_NE(first->getString(1).asStdString(), "first");
}

}  // namespace
}  // namespace kvstore::testing
