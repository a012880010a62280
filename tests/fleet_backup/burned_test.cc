#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "tests/fleet_backup/backed_up_fleet.h"
#include "tests/shardops/page_commands.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Follows the page of docs/runbook.md about a pair whose hosts are both lost, with the commands as they
/// stand there.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kSection[] = "## Both hosts of a pair are lost";

/// The text of the page.
std::string Page() {
  const std::string all = *ReadFile(std::string(KV_SOURCE_DIR) + "/docs/runbook.md");
  const size_t begin = all.find(std::string("\n") + kSection + "\n");
  EXPECT_NE(begin, std::string::npos);
  return all.substr(begin, all.find("\n## ", begin + 1) - begin);
}

/// A host that a pair is restored onto: it has nothing yet, and is configured as all hosts of the pair.
class NewHost {
 public:
  explicit NewHost(int id) : server_(ServerPair::Arguments(id, /*domain=*/1, {})) { server_.Kill(); }

  MariaDbServer& server() { return server_; }
  std::string name() const { return server_.address(); }
  /// Puts restored data in the place of its own, and starts it.
  void StartOn(const fs::path& data) {
    fs::remove_all(server_.data());
    fs::rename(data, server_.data());
    server_.Start();
  }

 private:
  MariaDbServer server_;
};

std::string Replaced(std::string text, const std::map<std::string, std::string>& names) {
  for (const auto& [there, here] : names) {
    for (size_t at = 0; (at = text.find(there, at)) != std::string::npos; at += here.size()) {
      text.replace(at, there.size(), here);
    }
  }
  return text;
}

TEST(BurnedPair, IsRestoredOntoTwoNewHosts) {
  BackedUpFleet fleet;
  const std::string a = fleet.pair().host_a().ToString();
  const std::string b = fleet.pair().host_b().ToString();
  fleet.Write("in the backup");
  fleet.AwaitSlave();
  fleet.Ok({"backup", "create", "--host", b});
  fleet.Write("in the log");
  ASSERT_OK(fleet.Ship());
  const auto wanted = fleet.Units();
  // A time within a second has what was committed in the seconds before it.
  const uint64_t lost_ms = NextSecond();
  fleet.pair().a().Kill();
  fleet.pair().b().Kill();

  NewHost c(5);
  NewHost d(6);
  const std::map<std::string, std::string> names = {{"MySQL001A", a},
                                                    {"MySQL009A", c.name()},
                                                    {"MySQL009B", d.name()},
                                                    {"2026-11-24T03:14:00Z", std::to_string(lost_ms)},
                                                    {"/srv/restored", (fleet.folder() / "restored").string()},
                                                    {"id.json", (fleet.folder() / "id.json").string()},
                                                    {"mod.json", (fleet.folder() / "mod.json").string()}};
  const auto commands = PageCommands(std::string(KV_SOURCE_DIR) + "/docs/runbook.md", kSection, names);
  ASSERT_EQ(commands.size(), 9u);
  auto command = commands.begin();

  // The first two commands show which hosts and backups are left.
  EXPECT_THAT(fleet.Kv(*command++).out, HasSubstr("do not answer"));  // kv shards status
  EXPECT_THAT(fleet.Ok(*command++), HasSubstr(a));                    // kv backup list --fleet
  // The data, on both hosts.
  const std::vector<std::string> restore = *command++;
  ASSERT_EQ(restore.at(1), "restore");
  std::string position;
  for (NewHost* const host : {&c, &d}) {
    const std::string told = fleet.Ok(restore);
    const std::string gtid =
        told.substr(told.find("GTID "), told.find(';', told.find("GTID ")) - told.find("GTID "));
    EXPECT_TRUE(position.empty() || position == gtid) << told;
    position = gtid;
    EXPECT_FALSE(fs::exists(fleet.folder() / "restored/my.cnf")) << "has a password";
    host->StartOn(fleet.folder() / "restored/mysql");
    fs::remove_all(fleet.folder() / "restored");
    EXPECT_EQ(host->server().Run("SELECT @@read_only"), "1\n");
    EXPECT_EQ(host->server().Run("SELECT COUNT(*) FROM mysql.user WHERE user = 'kv_restore'"), "0\n");
  }
  // The maps.
  const std::string open =
      "SET GLOBAL rpl_semi_sync_slave_enabled = OFF, rpl_semi_sync_master_enabled = ON, read_only = 0";
  EXPECT_THAT(Page(), HasSubstr(open));
  c.server().Run(open);
  for (const char* const kind : {"id.json", "mod.json"}) {
    std::vector<std::string> get = *command++;
    ASSERT_EQ(get.at(get.size() - 2), ">") << "the page writes it to a file";
    get.resize(get.size() - 2);
    const std::string map = Replaced(fleet.Ok(get), {{a, c.name()}, {b, d.name()}});
    std::ofstream(names.at(kind)) << map;
  }
  for (int i = 0; i < 2; ++i) {
    std::vector<std::string> set = *command++;
    set.push_back("--yes");  // at a terminal the command asks
    fleet.Ok(set);
  }
  const std::string promoted = fleet.Ok(*command++);
  EXPECT_THAT(promoted, HasSubstr(c.name() + " is the master, " + d.name() + " follows it"));
  EXPECT_THAT(fleet.Ok(*command++), HasSubstr("the hosts are as the maps and the catalog say"));
  EXPECT_EQ(command, commands.end());

  // All that was sent is there, on both hosts, and clients go on.
  EXPECT_TRUE(Eventually([&] {
    const CellWrite cell{"c", "on new hosts", std::nullopt};
    return fleet.store().PutRow("events", "new", {&cell, 1}, {}).ok();
  }));
  EXPECT_OK(fleet.store().DeleteRow("events", "new", {}));
  EXPECT_EQ(fleet.Units(), wanted);
  EXPECT_TRUE(Eventually([&] {
    return c.server().Run("SELECT @@gtid_current_pos") == d.server().Run("SELECT @@gtid_current_pos");
  }));
  EXPECT_EQ(d.server().Run("CHECKSUM TABLE mod00000.events, db00001.pins"),
            c.server().Run("CHECKSUM TABLE mod00000.events, db00001.pins"));
  EXPECT_TRUE(Eventually([&] { return fleet.Kv({"shards", "status"}).code == 0; }));
  // The next backups go where those of the lost pair are.
  fleet.Ok({"backup", "create", "--host", d.name()});
  EXPECT_EQ(fleet.OkJson({"backup", "list", "--host", c.name()})["backups"].size(), 2u);
}

}  // namespace
}  // namespace kvstore::testing
