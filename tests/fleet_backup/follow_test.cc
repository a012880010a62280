#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backup/list.h"
#include "base/files.h"
#include "fleet_backup/host_follower.h"
#include "shardops/promote.h"
#include "tests/fleet_backup/backed_up_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Backups that are made from time to time, and the log that is sent after them.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;
using fleet_backup::HostFollower;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

/// The metrics of a follower.
struct FollowMetrics : MetricsSink {
  void Gauge(std::string_view name, std::string_view, const Labels&, double value) override {
    values.emplace(name, value);
  }
  void Counter(std::string_view name, std::string_view, const Labels&, double value) override {
    values.emplace(name, value);
  }
  std::map<std::string, double> values;
};

class FleetFollow : public ::testing::Test {
 protected:
  /// The tests of this program share a fleet, and each one begins with its own backups.
  void SetUp() override { fs::remove_all(fleet().folder() / "backups"); }
  static BackedUpFleet& fleet() {
    static BackedUpFleet fleet;
    return fleet;
  }

  std::unique_ptr<HostFollower> Follow(const Host& host, uint64_t every_ms) {
    return std::make_unique<HostFollower>(
        fleet().pair().fleet(), ZooKeeperOptions{.servers = fleet().pair().zookeeper().address()}, host,
        fleet().opener(),
        fleet_backup::FollowOptions{.every_ms = every_ms,
                                    .keep = 2,
                                    .ship_ms = 20,
                                    .retry_ms = 20,
                                    .log = [this](bool is_problem, const std::string& line) {
                                      const std::lock_guard lock(mutex_);
                                      (is_problem ? problems_ : lines_) += line + "\n";
                                    }});
  }
  std::string Lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  std::string Problems() {
    const std::lock_guard lock(mutex_);
    return problems_;
  }
  static std::map<std::string, double> MetricsOf(const HostFollower& follower) {
    FollowMetrics metrics;
    follower.Describe(metrics);
    return metrics.values;
  }

  std::mutex mutex_;
  std::string lines_;     // guarded by mutex_
  std::string problems_;  // the same
};

TEST_F(FleetFollow, ACommandDoesItUntilItIsStopped) {
  Json config = Json::parse(*ReadFile(fleet().config()));
  config["backup"]["every"] = "1h";
  config["backup"]["keep"] = 2;
  const fs::path file = fleet().folder() / "follow.json";
  std::ofstream(file) << config;
  const std::string slave = fleet().pair().host_b().ToString();
  const std::string out = (fleet().folder() / "follow.out").string();
  const pid_t process = ForkProgram(
      {KV_PROGRAM, "--config", file.string(), "backup", "follow", "--host", slave, "--http", "127.0.0.1:0"},
      out);
  // It makes the first backup itself, and the folder for it.
  ASSERT_TRUE(Eventually([] { return fs::exists(fleet().folder() / "backups"); }));
  const auto pairs = [] { return fleet().OkJson({"backup", "list", "--fleet"})["pairs"]; };
  ASSERT_TRUE(Eventually([&] { return pairs().size() == 1; }));
  NextSecond();
  fleet().Write("sent");
  const uint64_t sent_ms = NextSecond();
  EXPECT_TRUE(Eventually([&] {
    const Json pair = pairs()[0];
    return pair.contains("log_until_ms") && pair["log_until_ms"].get<uint64_t>() + 2000 >= sent_ms;
  }));
  const std::string said = *ReadFile(out);
  EXPECT_THAT(said, HasSubstr("following " + slave + "; http on port "));
  const std::string port = said.substr(said.rfind(' ') + 1, said.size() - said.rfind(' ') - 2);
  const Output page = RunProgram(
      {"bash", "-c",
       "exec 3<>/dev/tcp/127.0.0.1/" + port + "; printf 'GET /metrics HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3"});
  EXPECT_THAT(page.out, HasSubstr("kvstore_backup_log_age_seconds"));
  EXPECT_THAT(page.out, HasSubstr("kvstore_backup_age_seconds"));
  EXPECT_THAT(page.out, HasSubstr("kvstore_backup_host_is_slave 1"));
  ::kill(process, SIGTERM);
  EXPECT_EQ(Wait(process).code, 0);
}

TEST_F(FleetFollow, TheHostThatIsTheSlaveWorks) {
  PairFleet& pair = fleet().pair();
  const auto a = Follow(pair.host_a(), 3'600'000);
  ASSERT_TRUE(Eventually([&] { return Lines().find("waiting until it is the slave") != std::string::npos; }));
  EXPECT_EQ(MetricsOf(*a), (std::map<std::string, double>{{"kvstore_backup_host_is_slave", 0}}));
  const auto b = Follow(pair.host_b(), 3'600'000);
  ASSERT_TRUE(Eventually([&] { return b->figures().backups == 1; }));
  fleet().Write("by b");
  ASSERT_TRUE(Eventually([&] { return b->figures().log.transactions > 0; }));
  auto metrics = MetricsOf(*b);
  EXPECT_EQ(metrics.at("kvstore_backup_host_is_slave"), 1);
  EXPECT_EQ(metrics.at("kvstore_backups_total"), 1);
  EXPECT_LT(metrics.at("kvstore_backup_log_age_seconds"), 20);

  ASSERT_OK(shardops::Promote(pair.fleet(), pair.host_b(), {.catch_up = std::chrono::seconds(20)}));
  ASSERT_TRUE(Eventually([&] { return a->figures().is_slave && !b->figures().is_slave; }));
  // The backup of the other host counts: no other is due.
  EXPECT_EQ(a->figures().backups, 0u);
  EXPECT_TRUE(Eventually([&] {
    const CellWrite cell{"c", "by a", std::nullopt};
    return fleet().store().PutRow("events", "row", {&cell, 1}, {}).ok();
  }));
  EXPECT_TRUE(Eventually([&] { return a->figures().log.transactions > 0; }));
  ASSERT_OK(shardops::Promote(pair.fleet(), pair.host_a(), {.catch_up = std::chrono::seconds(20)}));
  ASSERT_TRUE(Eventually([&] { return b->figures().is_slave; }));
  fleet().Ok({"backup", "verify", "--host", pair.host_a().ToString(), "--deep"});
}

TEST_F(FleetFollow, AGapIsFollowedByAnotherBackup) {
  {
    const auto follower = Follow(fleet().pair().host_b(), 3'600'000);
    ASSERT_TRUE(Eventually([&] { return follower->figures().backups == 1; }));
    fleet().Write("sent");
    ASSERT_TRUE(Eventually([&] { return follower->figures().log.transactions > 0; }));
  }
  fleet().Write("not sent");
  fleet().AwaitSlave();
  BackedUpFleet::PurgeLogs(fleet().pair().b());
  fleet().Write("behind the purge");
  const auto follower = Follow(fleet().pair().host_b(), 3'600'000);
  ASSERT_TRUE(Eventually([&] { return follower->figures().backups == 1; }));
  EXPECT_THAT(Problems(), HasSubstr("has a gap here"));
  EXPECT_THAT(backup::ListBackups(*fleet().OpenBlobs())->live, SizeIs(2));
  fleet().Write("sent again");
  EXPECT_TRUE(Eventually([&] { return follower->figures().log.transactions > 0; }));
}

TEST_F(FleetFollow, ASlaveThatLacksItsMasterIsAnAlarm) {
  const auto follower = Follow(fleet().pair().host_b(), 3'600'000);
  ASSERT_TRUE(Eventually([&] { return follower->figures().sent_until_ms > 0; }));
  fleet().pair().b().Run("STOP SLAVE SQL_THREAD");
  EXPECT_TRUE(Eventually([&] { return MetricsOf(*follower).at("kvstore_backup_log_failing") == 1; }));
  EXPECT_THAT(Problems(), HasSubstr("does not replicate"));
  fleet().pair().b().Run("START SLAVE SQL_THREAD");
  EXPECT_TRUE(Eventually([&] { return MetricsOf(*follower).at("kvstore_backup_log_failing") == 0; }));
}

TEST_F(FleetFollow, WhileZooKeeperIsAwayTheLogIsSent) {
  const auto follower = Follow(fleet().pair().host_b(), 3'600'000);
  ASSERT_TRUE(Eventually([&] { return follower->figures().sent_until_ms > 0; }));
  const uint64_t before = follower->figures().log.transactions;
  fleet().pair().zookeeper().Stop();
  const CellWrite cell{"c", "without ZooKeeper", std::nullopt};
  ASSERT_OK(fleet().store().PutRow("events", "row", {&cell, 1}, {}));
  EXPECT_TRUE(Eventually([&] { return Problems().find("ZooKeeper") != std::string::npos; }));
  fleet().pair().zookeeper().Start();
  EXPECT_TRUE(Eventually(
      [&] { return follower->figures().log.transactions > before && follower->figures().last_error.ok(); }));
}

}  // namespace
}  // namespace kvstore::testing
