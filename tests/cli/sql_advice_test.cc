#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "shardops/engine.h"
#include "tests/cli/advice_table.h"

/// Checks that every statement of SQL that a text of this program proposes to type is in the table of
/// docs/operators.md, with the test that obeys it (tests/shardops/sql_advice_test.cc, for the most part).
namespace kvstore::cli {
namespace {

/// Whether a text is a statement itself, which the program runs: it begins with a word in capitals.
bool IsStatement(const std::string& text) {
  const size_t end = std::min(text.find(' '), text.size());
  return end >= 3 && std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end),
                                 [](unsigned char c) { return std::isupper(c) != 0; });
}

/// Returns the statements that a text names: each as far as it does not depend on the host.
std::vector<std::string> StatementsIn(const std::string& text) {
  static const std::regex kStatement(
      "\\b(?:(?:STOP|START|RESET) (?:ALL )?(?:SLAVES?|REPLICA)(?: (?:ALL|SQL_THREAD|IO_THREAD))?|SET GLOBAL "
      "[a-z_]+|RESET PERSIST [a-z_]+|"
      "SHOW (?:FULL )?PROCESSLIST|KILL(?= [{0-9])|(?:RENAME|DROP|ALTER|CREATE|OPTIMIZE|TRUNCATE|LOCK) "
      "(?:TABLES?|DATABASE|USER|TRIGGER)|UNLOCK TABLES|CHANGE (?:MASTER|REPLICATION SOURCE)|(?:DELETE "
      "FROM|INSERT INTO|UPDATE) "
      "[`{]|GRANT (?!OPTION)[A-Z]+|with SQL)");
  std::vector<std::string> statements;
  if (IsStatement(text)) return statements;
  for (std::sregex_iterator found(text.begin(), text.end(), kStatement), end; found != end; ++found) {
    statements.push_back((*found)[0]);
  }
  return statements;
}

/// The statements of the table's first cells.
std::set<std::string> StatementsOfTheTable() {
  static const std::regex kQuoted("`([^`]+)`");
  std::set<std::string> statements;
  for (const auto& row : AdviceTable("| proposed SQL |")) {
    for (std::sregex_iterator found(row[0].begin(), row[0].end(), kQuoted), end; found != end; ++found) {
      statements.insert((*found)[1]);
    }
  }
  return statements;
}

/// The statements that messages have from the words of MariaDB; of MySQL they are the same by other names.
std::vector<std::string> StatementsOfTheWords() {
  const shardops::Words& words = shardops::WordsOf(shardops::Engine::kMariaDb);
  return StatementsIn(fmt::format("say: SET GLOBAL {} = ON; SET GLOBAL {} = ON; {}; {}; {}; {}",
                                  words.semi_sync, words.wait_no_slave, words.stop_slave, words.forget_master,
                                  words.start_applying, words.stop_channels));
}

TEST(SqlAdvice, EveryStatementThatAMessageProposesIsInTheTableOfTests) {
  const std::set<std::string> in_table = StatementsOfTheTable();
  std::set<std::string> proposed;
  for (const std::string& statement : StatementsOfTheWords()) {
    EXPECT_TRUE(in_table.contains(statement)) << statement;
    proposed.insert(statement);
  }
  for (const SourceText& text : TextsOfTheSources()) {
    // Benchmarks propose nothing.
    if (text.file.starts_with("bench/")) continue;
    for (const std::string& statement : StatementsIn(text.text)) {
      EXPECT_TRUE(in_table.contains(statement))
          << text.file << ": " << statement
          << ": add it to the table of docs/operators.md, with the test that "
          << "obeys it:\n"
          << text.text;
      proposed.insert(statement);
    }
  }
  EXPECT_EQ(proposed, in_table) << "the table has statements that nothing proposes";
}

TEST(SqlAdvice, TheTestsOfTheTableExist) { EXPECT_GT(CheckTestsOf(AdviceTable("| proposed SQL |")), 8u); }

TEST(SqlAdvice, StatementsInTextsAreFound) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(StatementsIn("{0}: follows {1}: STOP SLAVE; RESET SLAVE ALL there"),
            (Strings{"STOP SLAVE", "RESET SLAVE ALL"}));
  EXPECT_EQ(StatementsIn(" known. SET GLOBAL rpl_wait = ON, there"), Strings{"SET GLOBAL rpl_wait"});
  EXPECT_EQ(StatementsIn("there names them, KILL {} ends that one"), Strings{"KILL"});
  EXPECT_EQ(StatementsIn("if nobody uses it, rename or drop it with SQL"), Strings{"with SQL"});
  EXPECT_EQ(StatementsIn("Keep those rows: RENAME TABLE {1} TO a database"), Strings{"RENAME TABLE"});
  // The program runs these itself.
  EXPECT_EQ(StatementsIn("SET GLOBAL read_only = 1"), Strings());
  EXPECT_EQ(StatementsIn("SET STATEMENT lock_wait_timeout = {} FOR RENAME TABLE {}"), Strings());
}

}  // namespace
}  // namespace kvstore::cli
