#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "backends/mysql/driver/connection.h"
#include "shardops/promote.h"
#include "shardops/replace.h"
#include "shardops/status.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// A master that comes back without the last of what it has acknowledged: a MariaDB server that was killed as
/// a master cuts off its log what it had not committed, and a power failure loses what was not on the disk.
/// Its slave has that.
namespace kvstore::testing {
namespace {

using shardops::Promote;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Matches;

class PromoteLostEndTest : public ::testing::Test {
 protected:
  PromoteLostEndTest() {
    pair_.fleet().report = [this](const std::string& text) { reported_ += text + "\n"; };
  }

  /// Keeps what the master has now.
  void Keep() {
    pair_.a().Kill();
    std::filesystem::copy(pair_.a().data(), kept_, std::filesystem::copy_options::recursive);
    pair_.a().Start();
    const auto promotion = Promote(pair_.fleet(), pair_.host_a(), {.catch_up = std::chrono::seconds(30)});
    ASSERT_OK(promotion);
    ASSERT_TRUE(promotion->follows);
  }

  /// Has the master acknowledge something, and die; and starts it, read-only, with what was kept.
  void Lose() {
    pair_.a().Run("CREATE DATABASE acknowledged");
    pair_.a().Kill();
    std::filesystem::remove_all(pair_.a().data());
    std::filesystem::copy(kept_, pair_.a().data(), std::filesystem::copy_options::recursive);
    pair_.a().Start();
  }

  /// Returns a session without which the slave applies what it has received.
  std::unique_ptr<mysql::Connection> HoldBack() {
    mysql::MySqlOptions options = pair_.fleet().access.admin;
    options.any_role = true;
    auto session = mysql::Connection::Open(pair_.host_b(), options);
    EXPECT_OK(session);
    (*session)->Run("FLUSH TABLES WITH READ LOCK");
    return *std::move(session);
  }

  bool IsReadOnly(const MariaDbServer& server) { return server.Run("SELECT @@read_only") == "1\n"; }

  std::string reported_;
  const TempDir dir_;
  const std::filesystem::path kept_ = dir_.path() / "kept";
  PairFleet pair_;
};

TEST_F(PromoteLostEndTest, WhatTheSlaveHasReceivedIsNotLost) {
  Keep();
  auto holds_back = HoldBack();
  Lose();
  const std::string has_more = fmt::format("transactions that {} lacks: kv shards promote {}",
                                           pair_.host_a().ToString(), pair_.host_b().ToString());
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_a(), {}),
              FailsWith(absl::StatusCode::kFailedPrecondition, has_more));
  EXPECT_TRUE(IsReadOnly(pair_.a()));
  // As the error says. What the slave has yet to apply is waited for, and not thrown away.
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {.catch_up = std::chrono::milliseconds(200)}),
              FailsWith(absl::StatusCode::kDeadlineExceeded, "has not applied all"));
  EXPECT_TRUE(IsReadOnly(pair_.a()));
  holds_back = nullptr;
  const auto promotion = Promote(pair_.fleet(), pair_.host_b(), {});
  ASSERT_OK(promotion);
  if (OnMySql()) {
    EXPECT_FALSE(promotion->follows);
    EXPECT_THAT(reported_, HasSubstr("takes none of these from it"));
    ASSERT_OK_AND_ASSIGN(const auto reports, shardops::InspectFleet(pair_.fleet()));
    EXPECT_TRUE(std::any_of(reports.begin(), reports.end(), [](const shardops::HostReport& report) {
      return Matches(Contains(HasSubstr("takes none of these from it")))(report.problems);
    }));
    ASSERT_OK(shardops::ReplaceSlave(pair_.fleet(), pair_.host_a(), {.discard = true}))
        << "as the report says";
  } else {
    EXPECT_TRUE(promotion->follows);
  }
  for (MariaDbServer* const server : {&pair_.a(), &pair_.b()}) {
    EXPECT_TRUE(
        Eventually([&] { return server->Run("SHOW DATABASES LIKE 'acknowledged'") == "acknowledged\n"; }));
  }
}

/// The channel of a move goes on when the server is started, whether or not it takes writes of clients.
TEST_F(PromoteLostEndTest, WhatAMoveHasBroughtSinceDoesNotHideIt) {
  KV_SKIP_ON_MYSQL("domains of GTIDs");
  Keep();
  auto holds_back = HoldBack();
  Lose();
  pair_.a().Run("SET SESSION gtid_domain_id = 77; CREATE DATABASE brought");
  for (const bool by_itself : {true, false}) {
    EXPECT_THAT(Promote(pair_.fleet(), pair_.host_a(), {.only_complete = by_itself}),
                FailsWith(absl::StatusCode::kFailedPrecondition, "transactions that"));
    EXPECT_TRUE(IsReadOnly(pair_.a()));
  }
  holds_back = nullptr;
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_b(), {})) << "as the error says";
  EXPECT_EQ(pair_.b().Run("SHOW DATABASES LIKE 'acknowledged'"), "acknowledged\n");
}

TEST_F(PromoteLostEndTest, AMasterIsNotOpenedByItselfBeforeItsSlaveWasAsked) {
  Keep();
  Lose();
  pair_.b().Kill();
  const shardops::PromoteOptions by_itself{.only_complete = true, .needs_other = true};
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_a(), by_itself),
              FailsWith(absl::StatusCode::kUnavailable, "It may have transactions that"));
  pair_.b().Start();
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_a(), by_itself),
              FailsWith(absl::StatusCode::kFailedPrecondition, "transactions that"));
  EXPECT_TRUE(IsReadOnly(pair_.a()));
  // A person may open it all the same, and is told what is not known.
  pair_.b().Kill();
  reported_.clear();
  EXPECT_OK(Promote(pair_.fleet(), pair_.host_a(), {}));
  EXPECT_THAT(reported_, HasSubstr("does not answer: whether it has transactions"));
}

}  // namespace
}  // namespace kvstore::testing
