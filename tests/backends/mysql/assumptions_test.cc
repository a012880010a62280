#include <cppconn/statement.h>
#include <mysql_driver.h>

#include <memory>
#include <string>

#include "tests/backends/mysql/test_fleet.h"

/// What we rely on, or work around, in MariaDB and in Connector/C++. If one of these fails after an upgrade,
/// the code that it names can be made simpler, or must be changed.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

std::unique_ptr<sql::Connection> Connect(sql::ConnectOptionsMap options = {}) {
  options["hostName"] = sql::SQLString("tcp://" + SharedFleet().server(0).address());
  options["userName"] = sql::SQLString("root");
  return std::unique_ptr<sql::Connection>(sql::mysql::get_mysql_driver_instance()->connect(options));
}

TEST(MariaDb, LosesRowsOfARangeThatEndsInADescendingPart) {
  // Why statements.cc says `ts + 0 >= ?`. The cells of column '' are missing from the first answer.
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
  // Why an ID is never given twice, also after the newest object was erased.
  MariaDbServer& server = SharedFleet().server(0);
  server.Run(
      "CREATE OR REPLACE DATABASE pins; CREATE TABLE pins.o (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY); "
      "INSERT INTO pins.o VALUES (), (), (); DELETE FROM pins.o");
  // What is lost in a kill is at most what was not written to the log: wait for that.
  server.Run(
      "SET GLOBAL innodb_flush_log_at_trx_commit = 1; INSERT INTO pins.o VALUES (); DELETE FROM pins.o");
  server.Kill();
  server.Start();
  EXPECT_EQ(server.Run("INSERT INTO pins.o VALUES (); SELECT id FROM pins.o; DROP DATABASE pins"), "5\n");
}

TEST(Connector, ConnectsInPlaintextThoughTlsIsEnforced) {
  // Why Connection::Open asks for Ssl_cipher.
  sql::ConnectOptionsMap options;
  options["sslEnforce"] = true;
  const auto connection = Connect(options);
  const std::unique_ptr<sql::Statement> statement(connection->createStatement());
  const std::unique_ptr<sql::ResultSet> cipher(statement->executeQuery("SHOW STATUS LIKE 'Ssl_cipher'"));
  ASSERT_TRUE(cipher->next());
  EXPECT_EQ(cipher->getString(2).asStdString(), "");
}

TEST(Connector, AnOldResultReadsWhatANewExecutionFound) {
  // Why Rows are gone before their statement runs again.
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
