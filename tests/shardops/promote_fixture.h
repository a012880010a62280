#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/fail_point.h"
#include "shardops/promote.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Is thrown at a fail point, as if the process had died there.
struct Died {};

/// The arguments of a host that can become a slave of the pair. Like the pair of PromoteTest it does not
/// flush its logs for each transaction, also when it is started again.
inline const std::vector<std::string> kThird = {"--log-bin=binlog",
                                                "--log-slave-updates",
                                                "--gtid-strict-mode=ON",
                                                "--server-id=9",
                                                "--sync-binlog=0",
                                                "--gtid-domain-id=1",
                                                "--read-only=ON",
                                                "--init-rpl-role=SLAVE",
                                                "--rpl-semi-sync-slave-enabled=ON",
                                                "--rpl-semi-sync-master-timeout=4000000"};

/// A store on a pair of servers, whose master tests replace.
class PromoteTest : public ::testing::Test {
 protected:
  PromoteTest() : store_(pair_.OpenStore(dir_.path())) {
    EXPECT_OK(store_->CreateDataset({.name = "events"}));
    if (!OnMySql()) return;
    // A slave of MySQL that flushes its logs for each transaction, as it does unless it is told not to,
    // applies less than four clients write.
    for (MariaDbServer* const server : {&pair_.a(), &pair_.b()}) {
      server->Run("SET GLOBAL sync_binlog = 0");
    }
  }
  ~PromoteTest() override { SetFailPointHook(nullptr); }

  /// The servers of the master by the map, and of the other host.
  MariaDbServer& Leader() { return pair_.Master() == pair_.host_a() ? pair_.a() : pair_.b(); }
  MariaDbServer& Other() { return pair_.Master() == pair_.host_a() ? pair_.b() : pair_.a(); }
  Host OtherHost() { return pair_.Master() == pair_.host_a() ? pair_.host_b() : pair_.host_a(); }

  /// Promotes a host to which much is written. As long as it is far behind, the command is run again: it says
  /// so, or has waited in vain.
  absl::StatusOr<shardops::Promotion> PromoteInTime(const Host& host) {
    auto promotion = shardops::Promote(pair_.fleet(), host, {});
    EXPECT_TRUE(Eventually([&] {
      const absl::string_view why = promotion.status().message();
      if (!absl::StrContains(why, "s behind") && !absl::StrContains(why, "has not applied all")) return true;
      promotion = shardops::Promote(pair_.fleet(), host, {});
      return false;
    }));
    return promotion;
  }

  const TempDir dir_;
  PairFleet pair_;
  std::unique_ptr<Router> store_;
};

}  // namespace kvstore::testing
