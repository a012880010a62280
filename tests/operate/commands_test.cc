#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/clock.h"
#include "operate/checks.h"
#include "operate/purge_record.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/processes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The command line of kv operate, by the real program, and what its leader looks at besides masters.
namespace kvstore::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class OperateCommandsTest : public ::testing::Test {
 protected:
  OperateCommandsTest() { pair_.WriteConfig(config_); }

  Output Kv(std::vector<std::string> arguments) const {
    std::vector<std::string> command = {KV_PROGRAM, "--config", config_};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProgram(command);
  }
  /// Adds what the configuration says of kv operate.
  void Configure(const Json& operate) const {
    Json config = Json::parse(std::ifstream(config_));
    config["operate"] = operate;
    std::ofstream(config_) << config;
  }
  shardops::FleetOptions Fleet() const {
    return {.zookeeper = {.servers = pair_.zookeeper().address()},
            .root = pair_.fleet().root,
            .has_operator = true,
            .access = pair_.fleet().access};
  }

  mutable PairFleet pair_;
  TempDir dir_;
  const std::string config_ = (dir_.path() / "operator.json").string();
};

TEST_F(OperateCommandsTest, APairIsSwitchedOnAndOffByAnyOfItsHosts) {
  const std::string a = pair_.host_a().ToString();
  const std::string b = pair_.host_b().ToString();
  const std::string name = std::min(pair_.host_a(), pair_.host_b()).ToString() + "," +
                           std::max(pair_.host_a(), pair_.host_b()).ToString();
  EXPECT_EQ(Kv({"operate", "on", b}).out, name + ": on\n");
  Json status = Json::parse(Kv({"operate", "status", "--json"}).out.substr(0, std::string::npos));
  EXPECT_EQ(status.at("pairs").at(0).at("pair"), name);
  EXPECT_EQ(status.at("pairs").at(0).at("on"), true);
  EXPECT_EQ(Kv({"operate", "off", "--all"}).out, name + ": off\n");
  status = Json::parse(Kv({"operate", "status", "--json"}).out);
  EXPECT_EQ(status.at("pairs").at(0).at("on"), false);

  const Output unknown = Kv({"operate", "on", "elsewhere"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("elsewhere: is in no shard map"));
  EXPECT_EQ(Kv({"operate", "on"}).code, 2);
  EXPECT_EQ(Kv({"operate", "on", a, "--all"}).code, 2);
}

TEST_F(OperateCommandsTest, AHostThatWouldComeBackWritableIsNotSwitchedOn) {
  // As if it had been started without read_only = 1: a server tells where a value is from.
  MariaDbServer writable(ServerPair::Arguments(77, 7, {"--read-only=OFF"}));
  const std::string map = fmt::format(R"([{{"range": [0, 7], "master": "{}", "slave": "{}"}}])",
                                      writable.address(), pair_.host_b().ToString());
  for (const char* const space : {"id", "mod"}) {
    ASSERT_OK(pair_.fleet().zookeeper.Set(fmt::format("/kvstore/shards/{}", space), map, -1));
  }
  const Output refused = Kv({"operate", "on", "--all"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("would take writes when it is started again, after its death"));
}

TEST_F(OperateCommandsTest, WhatIsPersistedOnAMySqlServerCounts) {
  if (!OnMySql()) GTEST_SKIP() << "needs MySQL servers: ./dev test --mysql9";
  // It holds once the server is started again, whatever its configuration says.
  pair_.a().Run("SET PERSIST super_read_only = OFF");
  Output refused = Kv({"operate", "on", "--all"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("would take writes when it is started again"));
  EXPECT_THAT(refused.err, HasSubstr("RESET PERSIST super_read_only there"));
  pair_.a().Run("RESET PERSIST super_read_only");
  EXPECT_TRUE(Eventually([&] { return Kv({"operate", "on", "--all"}).code == 0; }));
}

TEST_F(OperateCommandsTest, TheProcessSaysWhatItSeesAndEndsWhenItIsTold) {
  Configure({{"look_ms", 200}, {"journal", "journal.jsonl"}});
  const std::string log = (dir_.path() / "out").string();
  const pid_t process =
      ForkProgram({KV_PROGRAM, "--config", config_, "operate", "--http", "127.0.0.1:0"}, log);
  Json status;
  EXPECT_TRUE(Eventually([&] {
    const Output shown = Kv({"operate", "status", "--json"});
    status = Json::parse(shown.out.substr(0, shown.out.find('\n')), nullptr, false);
    return status.is_object() && !status.at("members").empty() &&
           status.at("members").at(0).at("leads") == true;
  }));
  EXPECT_THAT(status.at("members").at(0).at("who").get<std::string>(),
              HasSubstr(fmt::format("process {}", process)));
  // It is alone, which a person is told.
  EXPECT_TRUE(Eventually([&] {
    return Kv({"operate", "status"}).out.find("only one process") != std::string::npos;
  }));
  EXPECT_EQ(Kv({"operate", "status"}).code, 1);
  EXPECT_THAT(Kv({"operate", "journal"}).out, HasSubstr("lead   kv operate: leads from now on"));
  std::stringstream out;
  out << std::ifstream(log).rdbuf();
  EXPECT_THAT(out.str(), HasSubstr("operating the fleet at /kvstore; http on port "));
  ::kill(process, SIGTERM);
  EXPECT_EQ(Wait(process).code, 0);
  std::stringstream journal;
  journal << std::ifstream(dir_.path() / "journal.jsonl").rdbuf();
  EXPECT_THAT(journal.str(), HasSubstr("leads from now on"));
  // Nobody leads any more.
  const Output after = Kv({"operate", "status"});
  EXPECT_EQ(after.code, 1);
  EXPECT_THAT(after.err, HasSubstr("no process of kv operate leads"));
}

TEST_F(OperateCommandsTest, APurgeThatNobodyMadeInItsHourIsMadeLater) {
  Configure({{"look_ms", 200}, {"purge_hour", 0}});
  ASSERT_EQ(Kv({"shards", "init"}).code, 0);
  ASSERT_EQ(Kv({"dataset", "create", "events", "--ttl-ms", "1000"}).code, 0);
  ASSERT_EQ(Kv({"put", "events", "row", "c=v", "--timestamp", "1700000000000"}).code, 0);
  ZooKeeper& zookeeper = pair_.fleet().zookeeper;
  const std::string root = pair_.fleet().root;
  ASSERT_OK(operate::LoadPurge(zookeeper, root, 1));  // in 1970
  EXPECT_TRUE(operate::FindBacklog(*operate::LoadPurge(zookeeper, root, 1), WallClockMs()).has_value());

  const pid_t process =
      ForkProgram({KV_PROGRAM, "--config", config_, "operate"}, (dir_.path() / "out").string());
  EXPECT_TRUE(Eventually([&] {
    const auto record = operate::LoadPurge(zookeeper, root, 1);
    return record.ok() && record->complete_ms > 1 && record->complete_ms == record->begun_ms;
  }));
  ::kill(process, SIGTERM);
  EXPECT_EQ(Wait(process).code, 0);
  const Output again = Kv({"purge", "events", "--json"});
  EXPECT_EQ(Json::parse(again.out).at("expired_cells"), 0) << "the cell is gone";
}

TEST_F(OperateCommandsTest, MistakesInTheConfigurationAreNamed) {
  Configure(
      {{"webhook", "pager"}, {"fence", Json::array()}, {"look_ms", 1}, {"purge_hour", 25}, {"hook", ""}});
  const Output refused = Kv({"operate"});
  EXPECT_EQ(refused.code, 1);
  for (const char* const words : {"operate.webhook: must be an address that begins with http:// or https://",
                                  "operate.fence: is an empty list: name a program", "operate.look_ms",
                                  "operate.purge_hour", "operate.hook"}) {
    EXPECT_THAT(refused.err, HasSubstr(words));
  }
}

TEST_F(OperateCommandsTest, ATableWhoseLocalIdsRunOutIsFound) {
  pair_.a().Run(
      "CREATE TABLE db00003.pins (local_id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT) AUTO_INCREMENT = "
      "61000000000");
  pair_.a().Run("CREATE TABLE db00004.pins (local_id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT)");
  const std::atomic<bool> active{true};
  int found = 0;
  for (const operate::Check& check : operate::FleetChecks(Fleet())) {
    const auto findings = check.find(active);
    EXPECT_OK(findings) << check.source;
    for (const operate::Finding& finding : *findings) {
      EXPECT_EQ(check.source, "ids");
      EXPECT_EQ(finding.subject, "db00003.pins");
      EXPECT_THAT(finding.text, HasSubstr("88 % of the local IDs"));
      ++found;
    }
  }
  EXPECT_EQ(found, 1);
}

/// The disks of hosts are known only where MariaDB has the plugin for it; without, nothing fails.
TEST_F(OperateCommandsTest, TheDiskOfAHostIsReadWhereItCanBe) {
  // MySQL has no such plugin, which is no fault.
  if (!OnMySql()) {
    pair_.a().Run("INSTALL SONAME 'disks'");
    const std::string free = pair_.a().Run(
        "SELECT COUNT(*) FROM information_schema.disks d WHERE @@datadir LIKE CONCAT(d.path, '%') AND d.used "
        "+ "
        "d.available > 0");
    EXPECT_NE(free, "0\n");
  }
  const std::atomic<bool> active{true};
  for (const operate::Check& check : operate::FleetChecks(Fleet())) {
    if (check.source == "disk") {
      EXPECT_OK(check.find(active));
    }
  }
}

}  // namespace
}  // namespace kvstore::testing
