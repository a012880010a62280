#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/shardops/pair.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// A statement that a message proposes for a host, "127.0.0.1:13306".
struct ProposedSql {
  std::string host;
  std::string statement;
};

/// Returns the commands in a text that change something, as one would type them.
std::vector<std::string> CommandsIn(const std::string& text);
/// Returns the statements in a text that change something, each with the host that its line names first.
std::vector<ProposedSql> SqlIn(const std::string& text);
/// Splits a command at its spaces.
std::vector<std::string> WordsOf(const std::string& command);

/// A fleet of one pair, on which an operator who knows nothing runs what the real program prints. Whatever
/// that is, every acknowledged write must be there afterwards.
class AdviceFixture : public ::testing::Test {
 protected:
  /// Makes the shards; there is no dataset yet.
  AdviceFixture();

  MariaDbServer& Leader() { return pair_.Master() == pair_.host_a() ? pair_.a() : pair_.b(); }
  MariaDbServer& Other() { return pair_.Master() == pair_.host_a() ? pair_.b() : pair_.a(); }

  Output Kv(std::vector<std::string> arguments, const std::string& input = "") const;
  /// Runs kv, which must succeed.
  void Run(const std::vector<std::string>& arguments) const;

  /// Makes two datasets, and writes the first rows.
  void MakeDatasets();
  /// Writes some rows to each shard, and expects that all are acknowledged.
  void Put();
  /// Expects that every row that was acknowledged has what was written.
  void ExpectAll() const;

  /// Returns what status and check print; empty if they find no problem.
  std::string Inspect() const;
  /// Runs what status and check propose, and what the commands and refusals propose then, until they find no
  /// problem. Statements of SQL are run before commands.
  void FollowAdvice();
  /// Breaks something and runs what is proposed. Expects that `proposed` is in one of the commands or
  /// statements, and that nothing that was acknowledged is lost.
  void BreakAndFollowAdvice(const std::string& what, const std::function<void()>& breaks,
                            const std::string& proposed);
  /// Runs a statement on the server that it is proposed for.
  void RunSql(const ProposedSql& proposed);

  const TempDir dir_;
  PairFleet pair_;
  std::vector<MariaDbServer*> others_;  // servers that messages may name, beside the pair's
  int rows_ = 0;
  std::vector<std::string> steps_;  // commands and statements that FollowAdvice has run
};

}  // namespace kvstore::testing
