#include "tests/shardops/pair.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "catalog/file_catalog.h"
#include "catalog/zookeeper_consumers.h"
#include "catalog/zookeeper_table_records.h"
#include "shardmap/map_source.h"
#include "shardmap/zookeeper_source.h"
#include "shardops/maps.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

namespace {

/// Adds threads that apply replication: with one thread a slave never catches up with a busy master on a slow
/// disk.
///
/// A MySQL server keeps what it wrote through a kill -9. A slave of it that flushed its log for each
/// transaction would apply half as fast as the master of a test commits.
std::vector<std::string> WithThreads(std::vector<std::string> arguments) {
  if (OnMySql()) arguments.emplace_back("--sync-binlog=0");
  arguments.emplace_back("--slave-parallel-threads=8");
  arguments.emplace_back("--slave-parallel-mode=minimal");
  return arguments;
}

/// Adds what a MySQL master needs whose shards are to move.
std::vector<std::string> Durable(std::vector<std::string> arguments) {
  if (OnMySql()) arguments.emplace_back("--innodb-flush-log-at-trx-commit=1");
  return arguments;
}

}  // namespace

std::vector<std::string> ServerPair::Arguments(int id, int domain, std::vector<std::string> more) {
  std::vector<std::string> all = {
      "--log-bin=binlog", "--log-slave-updates", "--gtid-strict-mode=ON", fmt::format("--server-id={}", id),
      fmt::format("--gtid-domain-id={}", domain), "--read-only=ON", "--init-rpl-role=SLAVE",
      "--rpl-semi-sync-slave-enabled=ON", "--rpl-semi-sync-master-timeout=4000000",
      "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
      // All that was acknowledged must survive kill -9.
      "--sync-binlog=1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

ServerPair::ServerPair(int number, const std::vector<std::string>& arguments)
    : a_(Arguments(2 * number - 1, number, Durable(arguments))),
      b_(Arguments(2 * number, number, WithThreads(arguments))) {
  // This holds for administrators too.
  if (OnMySql()) a_.Run("SET GLOBAL super_read_only = OFF");
  a_.Run(
      "CREATE USER repl@'127.0.0.1' IDENTIFIED BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl@'127.0.0.1';"
      "CREATE USER kvstore@'127.0.0.1' IDENTIFIED BY 'kvstore'; GRANT ALL ON `db%`.* TO kvstore@'127.0.0.1';"
      "GRANT ALL ON `mod%`.* TO kvstore@'127.0.0.1';");
  // Slaves are copied with this login.
  if (OnMySql()) a_.Run("GRANT BACKUP_ADMIN ON *.* TO repl@'127.0.0.1'");
  b_.Run(fmt::format(
      "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {}, master_user = 'repl', "
      "master_password = 'repl', master_use_gtid = slave_pos, master_connect_retry = 1; START SLAVE",
      a_.port()));
  a_.Run("SET GLOBAL rpl_semi_sync_slave_enabled = OFF, rpl_semi_sync_master_enabled = ON");
  EXPECT_TRUE(Eventually(
      [&] { return a_.Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t1\n"); }));
  a_.Run("SET GLOBAL read_only = OFF");
}

PairFleet::PairFleet()
    : zookeeper_({.servers = zookeeper_server_.address()}, nullptr),
      fleet_{
          .zookeeper = zookeeper_,
          .access = {.admin = {.user = "root"}, .replication_user = "repl", .replication_password = "repl"},
          .report = [](const std::string& text) { std::printf("%s\n", text.c_str()); }} {
  const std::string map = fmt::format(R"([{{"range": [0, {}], "master": "{}", "slave": "{}"}}])", kShards - 1,
                                      host_a().ToString(), host_b().ToString());
  for (const char* name : {"id", "mod"}) {
    EXPECT_OK(zookeeper_.Create(fmt::format("{}/shards/{}", fleet_.root, name), map));
  }
  const TempDir dir;
  OpenStore(dir.path());  // creates the databases
}

Host PairFleet::Master() {
  const auto maps = shardops::Maps::Load(zookeeper_, fleet_.root);
  EXPECT_OK(maps);
  return maps->all().front().map.ranges().front().master;
}

std::unique_ptr<MySqlBackend> PairFleet::BackendOf(mysql::MapSources maps) const {
  mysql::MySqlOptions options{.user = "kvstore", .password = "kvstore"};
  options.breaker.min_pause_ms = 50;
  options.breaker.max_pause_ms = 200;
  options.purge_cells_per_s = 0;
  options.tables_on_first_use = tables_on_first_use_;
  const ZooKeeperOptions zookeeper{.servers = zookeeper_server_.address()};
  return *MySqlBackend::Open(
      std::move(maps), options, Consumers(),
      std::make_unique<ZooKeeperTableRecords>(std::make_shared<ZooKeeper>(zookeeper, nullptr), fleet_.root));
}

mysql::MapSources PairFleet::Maps() const {
  const auto source = [&](const char* name) {
    return OpenZooKeeperSource({.servers = zookeeper_server_.address()},
                               fmt::format("{}/shards/{}", fleet_.root, name));
  };
  return {.id = source("id"), .mod = source("mod"), .weights = source("weights")};
}

std::unique_ptr<ConsumerPlaces> PairFleet::Consumers() const {
  return std::make_unique<ZooKeeperConsumers>(ZooKeeperOptions{.servers = zookeeper_server_.address()},
                                              fleet_.root);
}

std::unique_ptr<MySqlBackend> PairFleet::OpenBackend() const { return BackendOf(Maps()); }

void PairFleet::WriteConfig(const std::filesystem::path& file) const {
  using Json = nlohmann::json;
  const Json mysql = {{"type", "mysql"},
                      {"user", "kvstore"},
                      {"password", "kvstore"},
                      {"operator", {{"user", "root"}, {"password", ""}}},
                      {"replication", {{"user", "repl"}, {"password", "repl"}}}};
  const Json config = {{"data", "data"},
                       {"zookeeper", {{"servers", zookeeper_server_.address()}}},
                       {"default_backend", "mysql"},
                       {"backends", {{"mysql", mysql}}}};
  std::ofstream(file) << config;
}

std::unique_ptr<Router> PairFleet::OpenStore(const std::filesystem::path& dir) const {
  return OpenStore(dir, Maps());
}

std::unique_ptr<Router> PairFleet::OpenStore(const std::filesystem::path& dir, mysql::MapSources maps) const {
  auto backend = BackendOf(std::move(maps));
  EXPECT_OK(backend->Init(nullptr, nullptr));
  Router::Backends backends;
  backends.emplace("mysql", std::move(backend));
  auto catalog = std::make_unique<FileCatalog>(dir / "catalog");
  const auto contents = catalog->Load();
  EXPECT_OK(contents);
  return *Router::Open(std::move(catalog), *contents, std::move(backends), "mysql",
                       std::make_unique<ZooKeeperLedger>(
                           ZooKeeperOptions{.servers = zookeeper_server_.address()}, fleet_.root));
}

void CutOffSlave(MariaDbServer& master, MariaDbServer& slave) {
  master.Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
  slave.Run("STOP SLAVE IO_THREAD");
  // The master notices it a moment later, and would wait for it until then.
  EXPECT_TRUE(Eventually(
      [&] { return master.Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t0\n"); }));
}

}  // namespace kvstore::testing
