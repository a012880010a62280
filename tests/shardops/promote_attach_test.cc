#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/fail_point.h"
#include "shardops/promote.h"
#include "shardops/replace.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// The last step of a promotion, after the host takes writes: the other host of the pair follows it.
namespace kvstore::testing {
namespace {

using shardops::Promote;
using shardops::ReplaceSlave;
using ::testing::HasSubstr;

class PromoteAttachTest : public ::testing::Test {
 protected:
  PromoteAttachTest() : store_(pair_.OpenStore(dir_.path())) {
    EXPECT_OK(store_->CreateDataset({.name = "events"}));
    pair_.fleet().report = [this](const std::string& text) { reported_ += text + "\n"; };
  }
  ~PromoteAttachTest() override { SetFailPointHook(nullptr); }

  void Put(const std::string& row) {
    const CellWrite cell{"c", "v", std::nullopt};
    EXPECT_OK(store_->PutRow("events", row, {&cell, 1}, {})) << row;
  }

  /// Waits until the slave has applied all that its master has, and returns its position.
  std::string WaitUntilApplied() {
    std::string position;
    EXPECT_TRUE(Eventually([&] {
      position = pair_.b().Run("SELECT @@GLOBAL.gtid_slave_pos");
      return position == pair_.a().Run("SELECT @@GLOBAL.gtid_binlog_pos");
    }));
    return position.substr(0, position.find('\n'));
  }

  const TempDir dir_;
  PairFleet pair_;
  std::unique_ptr<Router> store_;
  std::string reported_;
};

TEST_F(PromoteAttachTest, AReplacedSlaveIsNotWaitedForAnyMoreWhenSomebodyTakesThePairOver) {
  const std::string user = "SET SESSION sql_log_bin = 0; ALTER USER repl@'127.0.0.1' ACCOUNT ";
  SetFailPointHook([&](std::string_view name) {
    if (name != "promote.opened") return;
    // The slave cannot connect, and retries every second; the replacement would wait for that for minutes.
    pair_.a().Run(user + "LOCK");
    // An emergency promotion takes claims away like this.
    EXPECT_OK(pair_.fleet().ledger->BeginOver(
        {.what = "promote", .claims = {Claim::Host(pair_.host_b().ToString(), ClaimMode::kExclusive)}}));
  });
  const absl::Status replaced = ReplaceSlave(pair_.fleet(), pair_.host_b(), {.discard = true});
  SetFailPointHook(nullptr);
  EXPECT_THAT(replaced, FailsWith(absl::StatusCode::kUnavailable, "has the copy, and does not follow"));
  EXPECT_THAT(reported_, HasSubstr("is not held any more"));
  pair_.a().Run(user + "UNLOCK");
  const auto promotion = Promote(pair_.fleet(), pair_.host_a(), {.catch_up = std::chrono::minutes(1)});
  ASSERT_OK(promotion);
  EXPECT_TRUE(promotion->follows);
}

TEST_F(PromoteAttachTest, AHostThatCannotFollowIsNotSaidToFollow) {
  // Each host has been the master, and has transactions of the other in its log.
  for (const Host& next : {pair_.host_b(), pair_.host_a()}) {
    const auto promotion = Promote(pair_.fleet(), next, {});
    ASSERT_OK(promotion);
    EXPECT_TRUE(promotion->follows);
    Put(next.ToString());
  }
  // The slave gets transactions of its own. It still names its master, and will apply nothing of it again.
  pair_.b().Run(
      "SET GLOBAL read_only = OFF; CREATE DATABASE only_here; DROP DATABASE only_here; SET GLOBAL read_only "
      "= "
      "ON");
  Put("after that");
  if (OnMySql()) {
    // There the slave goes on applying, so that it has all that its master has, and more.
    EXPECT_TRUE(Eventually([&] {
      return Promote(pair_.fleet(), pair_.host_a(), {}).status().message().find("has 2 transactions that") !=
             std::string::npos;
    }));
    const auto promotion = Promote(pair_.fleet(), pair_.host_b(), {});
    ASSERT_OK(promotion) << "as the error says";
    EXPECT_TRUE(promotion->follows);
    return;
  }
  for (const bool dry_run : {true, false}) {
    reported_.clear();
    const auto promotion = Promote(pair_.fleet(), pair_.host_a(), {.dry_run = dry_run});
    ASSERT_OK(promotion);
    EXPECT_FALSE(promotion->follows) << dry_run;
    EXPECT_THAT(reported_, HasSubstr("so it cannot follow")) << dry_run;
  }
  ASSERT_OK(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.discard = true})) << "as the report says";
}

TEST_F(PromoteAttachTest, ASlaveFollowsAgainThatWasKilledWhileItNotedWhomItFollows) {
  KV_SKIP_ON_MYSQL("its notes are in files; MySQL's are in tables");
  for (const char* const file : {"master.info", "relay-log.info"}) {
    Put(std::string("before ") + file);
    const std::string noted = WaitUntilApplied();
    // As a server leaves it that is killed after it has logged a statement which is no transaction, and
    // before it notes that.
    pair_.a().Run("DROP DATABASE IF EXISTS nothing");
    EXPECT_NE(WaitUntilApplied(), noted);
    pair_.b().Run("STOP SLAVE; SET GLOBAL gtid_strict_mode = OFF; SET GLOBAL gtid_slave_pos = '" + noted +
                  "'");
    pair_.b().Kill();
    // As a server that is killed while it writes them may leave them.
    std::filesystem::resize_file(pair_.b().data() / file, 0);
    pair_.b().Start();
    const auto promotion = Promote(pair_.fleet(), pair_.host_a(), {.catch_up = std::chrono::minutes(1)});
    ASSERT_OK(promotion) << file;
    EXPECT_TRUE(promotion->follows) << file << "\n" << reported_;
    Put(std::string("after ") + file);
  }
}

TEST_F(PromoteAttachTest, ADryRunDoesNotSayThatASlaveFollowsWhichDoesNotReplicate) {
  pair_.b().Run("STOP SLAVE SQL_THREAD");
  const auto would = Promote(pair_.fleet(), pair_.host_a(), {.dry_run = true});
  ASSERT_OK(would);
  EXPECT_FALSE(would->follows);
  pair_.b().Run("START SLAVE SQL_THREAD");
  const auto promotion = Promote(pair_.fleet(), pair_.host_a(), {});
  ASSERT_OK(promotion);
  EXPECT_TRUE(promotion->follows);
}

}  // namespace
}  // namespace kvstore::testing
