#include "shardops/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// What is wrong with the hosts of a fleet is found and said.
namespace kvstore::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class StatusTest : public ::testing::Test {
 protected:
  std::vector<std::string> Found(const std::vector<DatasetSpec>& datasets = {}) {
    auto found = shardops::Check(pair_.fleet(), datasets);
    EXPECT_OK(found.status());
    return found.ok() ? *std::move(found) : std::vector<std::string>();
  }
  /// Whether something is found that has this in it, soon.
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
  const auto reports = shardops::Look(pair_.fleet());
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
  // As it says.
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_a(), {}).status());
  IsWell();
  pair_.a().Kill();
  Finds("kv shards promote " + pair_.host_b().ToString() + " --emergency");
}

TEST_F(StatusTest, WhatTheMapsAndTheHostsDoNotHaveInCommonIsFound) {
  pair_.a().Run(
      "DROP DATABASE mod00003; CREATE DATABASE db00099; CREATE DATABASE dbx; CREATE TABLE db00000.pins (i "
      "INT)");
  const std::vector<DatasetSpec> datasets = {{.name = "pins", .shape = Shape::kObjects},
                                             {.name = "events", .shape = Shape::kRows}};
  EXPECT_TRUE(Eventually([&] { return Found(datasets).size() >= 2 * (1 + 7 + 7 + 1); }));
  const auto found = Found(datasets);
  EXPECT_THAT(found, Contains(HasSubstr("database mod00003 is missing")));
  EXPECT_THAT(found, Contains(HasSubstr("table db00001.pins is missing")));
  EXPECT_THAT(found, Not(Contains(HasSubstr("table db00000.pins is missing"))));
  EXPECT_THAT(found, Contains(HasSubstr("table mod00007.events is missing")));
  EXPECT_THAT(found, Contains(HasSubstr("database db00099 is of a shard that the map has elsewhere")));
  EXPECT_THAT(found, Not(Contains(HasSubstr("dbx"))));
}

}  // namespace
}  // namespace kvstore::testing
