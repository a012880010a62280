#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backup/list.h"
#include "backup/restore.h"
#include "base/files.h"
#include "fleet_backup/host_create.h"
#include "shardops/promote.h"
#include "shardops/replace.h"
#include "tests/fleet_backup/backed_up_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Backups of a pair of real servers, and shards restored as of a second.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

class FleetBackup : public ::testing::Test {
 protected:
  /// The tests of this program share a fleet, and each one begins with its own backups.
  void SetUp() override {
    fs::remove_all(fleet().folder() / "backups");
    restored_ = fleet().folder() / "restored";
    fs::remove_all(restored_);
  }
  static BackedUpFleet& fleet() {
    static BackedUpFleet fleet;
    return fleet;
  }
  static std::string slave() { return fleet().pair().host_b().ToString(); }
  static std::string BackUp() {
    fleet().AwaitSlave();
    const Json made = fleet().OkJson({"backup", "create", "--host", slave()});
    return made["backup"]["id"];
  }
  /// Restores shards into restored_.
  std::string Restore(const std::string& shards, uint64_t at_ms, ShardSpace space = ShardSpace::kId) const {
    fs::remove_all(restored_);
    std::vector<std::string> arguments = {"backup", "restore", "--shards",
                                          shards,   "--to",    restored_.string()};
    if (at_ms != 0) arguments.insert(arguments.end(), {"--at", std::to_string(at_ms)});
    if (space == ShardSpace::kMod) arguments.emplace_back("--mod");
    return fleet().Ok(arguments);
  }
  void FailsToRestore(const std::vector<std::string>& more, const std::string& text) const {
    std::vector<std::string> arguments = {"backup", "restore", "--to", restored_.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    fleet().Fails(arguments, text);
  }
  /// The objects of the pair's backups, by their names.
  static std::vector<BlobEntry> Objects() { return *backup::ListAll(*fleet().OpenBlobs(), "objects/"); }

  fs::path restored_;
};

TEST_F(FleetBackup, ShardsAreRestoredAsTheyWereAtASecond) {
  fleet().Write("before the backup");
  BackUp();
  fleet().Write("behind the backup");
  const auto wanted = fleet().Units();
  const uint64_t at_ms = NextSecond();
  fleet().Write("too late");
  ASSERT_OK(fleet().store().DropDataset("boards", {}));
  ASSERT_OK(fleet().Ship());

  const std::string told = Restore("2-3", at_ms);
  EXPECT_THAT(told, HasSubstr("has the shards db 2-3 of " + slave()));
  EXPECT_THAT(told, HasSubstr("transactions of the binary log after it"));
  EXPECT_THAT(told, Not(HasSubstr("ends there")));
  {
    LookedAt look(restored_);
    EXPECT_EQ(look.Units(), OfShards(wanted, {.space = ShardSpace::kId, .first = 2, .last = 3}));
    // Nothing else is left on the server.
    EXPECT_EQ(RunProgram({"mariadb", "--defaults-file=" + (restored_ / "my.cnf").string(), "-BN", "-e",
                          "SHOW DATABASES LIKE 'db%'"})
                  .out,
              "db00002\ndb00003\n");
  }
  EXPECT_FALSE(fs::exists(restored_ / "RESTORING"));

  // Rows, of which each shard is found by the number of all.
  Restore("4-6", at_ms, ShardSpace::kMod);
  EXPECT_EQ(LookedAt(restored_).Units(),
            OfShards(wanted, {.space = ShardSpace::kMod, .first = 4, .last = 6}));

  // Behind the end of the log all that was sent is there, without the dataset that was dropped.
  EXPECT_THAT(Restore("0-7", NextSecond() + 60'000), HasSubstr("the log that was sent ends there"));
  const auto now = OfShards(fleet().Units(), {.space = ShardSpace::kId, .first = 0, .last = 7});
  EXPECT_THAT(now[1], IsEmpty());
  EXPECT_EQ(LookedAt(restored_).Units(), now);
  ASSERT_OK(fleet().store().CreateDataset({.name = "boards", .shape = Shape::kMappings}));
}

TEST_F(FleetBackup, WhatWasRestoredGoesBackIntoTheStore) {
  fleet().Write("kept");
  const auto wanted = OfShards(fleet().Units(), {.space = ShardSpace::kMod, .first = 0, .last = 7});
  BackUp();
  // A mistake: all rows of some shards are gone.
  for (int i = 0; i < 4; ++i) {
    for (uint32_t shard = 0; shard < PairFleet::kShards; ++shard) {
      ASSERT_OK(fleet().store().DeleteRow("events", fmt::format("row{}-{}", shard, i), {}));
    }
  }
  Restore("0-7", 0, ShardSpace::kMod);
  const LookedAt look(restored_);
  const std::string config = (restored_ / "kv.json").string();
  const std::string lines = (restored_ / "events.jsonl").string();
  const Output exported = RunProgram({KV_PROGRAM, "--config", config, "export", "events", "--to", lines});
  EXPECT_EQ(exported.code, 0) << exported.err;
  fleet().Ok({"import", "events", lines});
  EXPECT_EQ(OfShards(fleet().Units(), {.space = ShardSpace::kMod, .first = 0, .last = 7}), wanted);
}

TEST_F(FleetBackup, ASecondBackupSendsWhatHasChanged) {
  fleet().Write("first");
  const std::string first = BackUp();
  fleet().Write("second");
  const Json second = fleet().OkJson({"backup", "create", "--host", slave()})["backup"];
  EXPECT_LT(second["sent_bytes"].get<uint64_t>(), second["bytes"].get<uint64_t>());
  EXPECT_LT(second["bytes"].get<uint64_t>() * 3, second["server_bytes"].get<uint64_t>()) << "is compressed";
  EXPECT_EQ(second["gtid"].get<std::string>() + "\n", fleet().pair().b().Run("SELECT @@gtid_current_pos"));

  // They are listed, shown, verified and pruned as all others; by either host of the pair.
  const std::string master = fleet().pair().host_a().ToString();
  EXPECT_THAT(fleet().OkJson({"backup", "list", "--host", master})["backups"], SizeIs(2));
  EXPECT_THAT(fleet().Ok({"backup", "show", "--host", slave()}),
              HasSubstr("slave of " + master + ": shards db 0-7, mod 0-7"));
  for (const char* const depth : {"--quick", "--deep"})
    fleet().Ok({"backup", "verify", "--host", slave(), depth});
  const Json verified = fleet().OkJson({"backup", "verify", "--host", slave()});
  EXPECT_THAT(verified["datasets"], ::testing::UnorderedElementsAre("pins", "boards", "events"));
  EXPECT_EQ(fleet().OkJson({"backup", "prune", "--host", slave(), "--keep", "1"})["removed"],
            Json::array({first}));
  EXPECT_THAT(fleet().OkJson({"backup", "list", "--host", slave()})["backups"], SizeIs(1));

  // The fleet at a glance.
  ASSERT_OK(fleet().Ship());
  const Json pairs = fleet().OkJson({"backup", "list", "--fleet"})["pairs"];
  ASSERT_THAT(pairs, SizeIs(1));
  EXPECT_EQ(pairs[0]["master"], master);
  EXPECT_EQ(pairs[0]["id"], second["id"]);
  EXPECT_GT(pairs[0]["log_until_ms"].get<uint64_t>(), 0u);
  EXPECT_THAT(fleet().Ok({"backup", "list", "--fleet"}), HasSubstr("db 0-7, mod 0-7"));
}

TEST_F(FleetBackup, TimesThatCannotBeRestoredAreTold) {
  const uint64_t before_ms = NextSecond();
  FailsToRestore({"--shards", "0-1"}, "backups: there is no such folder");
  fs::create_directory(fleet().folder() / "backups");
  FailsToRestore({"--shards", "0-1"}, "no pair that has a backup");
  const std::string id = BackUp();
  const std::string at = std::to_string(before_ms);
  FailsToRestore({"--shards", "0-1", "--at", at}, "no pair that has a backup which was finished by then");
  FailsToRestore({"--host", slave(), "--at", at}, "there is no backup of the pair of " + slave());
  FailsToRestore({"--host", slave(), "--backup", id, "--at", at}, "there is no backup");
  FailsToRestore({"--host", "MySQL077A"}, "there is no backup of the pair of MySQL077A");
  FailsToRestore({"--shards", "0-9"}, "8 of them were on");
  EXPECT_FALSE(fs::exists(restored_));
}

TEST_F(FleetBackup, DamageIsToldAndLeavesNothing) {
  fleet().Write("x");
  BackUp();
  fleet().Write("y");
  ASSERT_OK(fleet().Ship());
  const std::string at = std::to_string(NextSecond() + 60'000);
  const auto damage = [&](const std::string& blob, const auto& check) {
    const fs::path path = fleet().blobs() / blob;
    const std::string whole = *ReadFile(path);
    std::string damaged = whole;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
    std::ofstream(path, std::ios::binary) << damaged;
    check();
    std::ofstream(path, std::ios::binary) << whole;
  };
  const auto log = *backup::ListAll(*fleet().OpenBlobs(), "log/");
  ASSERT_FALSE(log.empty());
  damage(log.back().name, [&] {
    FailsToRestore({"--shards", "0-1", "--at", at}, log.back().name);
    EXPECT_TRUE(fs::is_empty(restored_));
    fleet().Fails({"backup", "verify", "--host", slave(), "--deep"}, "is not whole");
  });
  for (const BlobEntry& object : Objects()) {
    damage(object.name, [&] {
      FailsToRestore({"--shards", "0-1"}, object.name);
      EXPECT_TRUE(fs::is_empty(restored_));
      fleet().Fails({"backup", "verify", "--host", slave(), "--deep"}, "is not whole");
    });
  }
  // One that is gone is sent again by the next backup.
  const std::string name = Objects().front().name;
  ASSERT_OK(fleet().OpenBlobs()->Delete(name));
  FailsToRestore({"--shards", "0-1"}, name + ": it is missing");
  BackUp();
  Restore("0-1", 0);
}

TEST_F(FleetBackup, AGapInTheLogIsToldAndNotSkipped) {
  fleet().Write("before the gap");
  BackUp();
  NextSecond();
  NextSecond();
  fleet().Write("sent");
  const uint64_t sent_ms = NextSecond();
  ASSERT_OK(fleet().Ship());
  NextSecond();
  fleet().Write("in the gap");
  const uint64_t within_ms = NextSecond();
  fleet().Write("in the gap, too");
  fleet().AwaitSlave();
  BackedUpFleet::PurgeLogs(fleet().pair().b());
  // The log has begun anew, and the server would give what it has.
  fleet().Write("behind the purge");
  EXPECT_THAT(fleet().Ship(), FailsWith(StatusCode::kOutOfRange, ""));
  EXPECT_THAT(fleet().Ship(), FailsWith(StatusCode::kOutOfRange, ""));
  BackUp();
  const auto wanted = fleet().Units();
  fleet().Write("behind the gap");
  ASSERT_OK(fleet().Ship());

  FailsToRestore({"--shards", "0-1", "--at", std::to_string(within_ms)}, "the binary log has a gap");
  EXPECT_TRUE(fs::is_empty(restored_));
  // Behind the backup, and before the second of what was sent last, up to which the log is known.
  EXPECT_THAT(Restore("0-1", sent_ms - 2000), Not(HasSubstr("ends there")));
  Restore("0-1", 0);
  EXPECT_EQ(LookedAt(restored_).Units(), OfShards(wanted, {.space = ShardSpace::kId, .first = 0, .last = 1}));
}

TEST_F(FleetBackup, TwoThatSendTheLogDoNotDisturbEachOther) {
  BackUp();
  const auto blobs = fleet().OpenBlobs();
  const auto nodes = [] { return absl::StatusOr<std::string>("nodes"); };
  fleet_backup::BinlogShipper one(*blobs, fleet().pair().fleet().access, {.domain = 1, .nodes = nodes});
  fleet_backup::BinlogShipper other(*blobs, fleet().pair().fleet().access, {.domain = 1, .nodes = nodes});
  for (int i = 0; i < 4; ++i) {
    fleet().Write("round " + std::to_string(i));
    fleet().AwaitSlave();
    ASSERT_OK((i % 2 == 0 ? one : other).Ship(fleet().pair().host_b()));
    ASSERT_OK(other.Ship(fleet().pair().host_b()));
  }
  EXPECT_GT(one.figures().transactions, 0u);
  EXPECT_GT(other.figures().transactions, 0u);
  fleet().Ok({"backup", "verify", "--host", slave(), "--deep"});
  // The state that processes share is not that of a fleet here, so it is not read.
  FailsToRestore({"--shards", "0-7", "--at", std::to_string(NextSecond())}, "zookeeper.json");
}

TEST_F(FleetBackup, TheLogGoesOnFromTheOtherHostAfterAPromotion) {
  fleet().Write("first");
  BackUp();
  fleet().Write("second");
  ASSERT_OK(fleet().Ship());
  PairFleet& pair = fleet().pair();
  ASSERT_OK(shardops::Promote(pair.fleet(), pair.host_b(), {.catch_up = std::chrono::seconds(20)}));
  EXPECT_EQ(pair.Master(), pair.host_b());
  EXPECT_TRUE(Eventually([&] {
    const CellWrite cell{"c", "third", std::nullopt};
    return fleet().store().PutRow("events", "row", {&cell, 1}, {}).ok();
  }));
  ASSERT_OK(fleet().Ship());
  // A slave that was made from a copy has no binary log of what was before.
  ASSERT_OK(shardops::ReplaceSlave(pair.fleet(), pair.host_a(), {.discard = true}));
  fleet().Write("fourth");
  ASSERT_OK(fleet().Ship());
  const auto wanted = fleet().Units();
  Restore("0-7", NextSecond() + 1000, ShardSpace::kMod);
  EXPECT_EQ(LookedAt(restored_).Units(),
            OfShards(wanted, {.space = ShardSpace::kMod, .first = 0, .last = 7}));
  // And the backups from the other host.
  fleet().Ok({"backup", "create", "--host", pair.host_a().ToString()});
  EXPECT_EQ(fleet().OkJson({"backup", "show", "--host", pair.host_a().ToString()})["backup"]["master"],
            pair.host_b().ToString());
  ASSERT_OK(shardops::Promote(pair.fleet(), pair.host_a(), {.catch_up = std::chrono::seconds(20)}));
  EXPECT_EQ(pair.Master(), pair.host_a());
}

TEST_F(FleetBackup, ASlaveThatDoesNotReplicateIsNotBackedUp) {
  fleet().pair().b().Run("STOP SLAVE SQL_THREAD");
  fleet().Fails({"backup", "create", "--host", slave()}, "does not replicate");
  fleet().pair().b().Run("START SLAVE SQL_THREAD");
  EXPECT_TRUE(Eventually([&] { return fleet().Kv({"backup", "create", "--host", slave()}).code == 0; }));
  fleet().Fails({"backup", "create", "--host", "MySQL077A"}, "is in no shard map");
}

TEST_F(FleetBackup, BackupsOfTwoPairsAreNotMixed) {
  BackUp();
  // A pair that is in the maps, too, has made backups with the same domain.
  const auto blobs = fleet().OpenBlobs();
  backup::Manifest other = *backup::ReadManifest(*blobs, *backup::NewestBackup(*blobs));
  other.id = "29991231T235959Z-00000000";
  other.server->master = "MySQL002A";
  other.server->slave = "MySQL002B";
  ASSERT_OK(blobs->Put("backups/" + other.id + ".json", backup::EncodeManifest(other), PutMode::kIfAbsent));
  fleet().AwaitSlave();
  // Its hosts are in no map, so this pair has taken its place.
  fleet().Ok({"backup", "create", "--host", slave()});
  ZooKeeper& zookeeper = fleet().pair().fleet().zookeeper;
  const std::string path = fleet().pair().fleet().root + "/shards/id";
  const std::string map = zookeeper.Get(path, /*watch=*/false)->data;
  std::string both = map.substr(0, map.rfind(']'));
  both += R"(, {"range": [100, 107], "master": "MySQL002A", "slave": "MySQL002B"}])";
  // The newest, also beside the one that was made after the first of them.
  other.id = "30991231T235959Z-11111111";
  ASSERT_OK(blobs->Put("backups/" + other.id + ".json", backup::EncodeManifest(other), PutMode::kIfAbsent));
  ASSERT_OK(zookeeper.Set(path, both, -1));
  fleet().Fails({"backup", "create", "--host", slave()}, "give each pair a gtid_domain_id of its own");
  ASSERT_OK(zookeeper.Set(path, map, -1));
}

TEST_F(FleetBackup, IsNotTakenForAStore) {
  fleet().Write("x");
  const std::string id = BackUp();
  const auto blobs = fleet().OpenBlobs();
  const auto manifest = *backup::ReadManifest(*blobs, id);
  EXPECT_THAT(backup::RestoreBackup(manifest, *blobs, restored_),
              FailsWith(StatusCode::kInvalidArgument, "kv backup restore --host " + slave()));
  EXPECT_FALSE(fs::exists(restored_));
  EXPECT_THAT(fleet().Ok({"backup", "restore", "--host", slave(), "--to", restored_.string()}),
              HasSubstr("/mysql is the data of " + slave()));
  // It is the data of a server, and nothing that only this command needs.
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(restored_)) names.insert(entry.path().filename());
  EXPECT_EQ(names, std::set<std::string>{"mysql"});
  EXPECT_TRUE(fs::exists(restored_ / "mysql/db00000"));
  FailsToRestore({"--host", slave()}, "is not empty");
}

TEST_F(FleetBackup, WhatWasInZooKeeperIsPutBack) {
  BackUp();
  const uint64_t before_ms = NextSecond();
  ASSERT_OK(fleet().store().CreateDataset({.name = "later"}));
  ASSERT_OK(fleet().Ship());
  ASSERT_OK(fleet().store().DropDataset("later", {}));
  Json config = Json::parse(*ReadFile(fleet().config()));
  const fs::path file = fleet().folder() / "other.json";
  const auto use = [&](const ZooKeeperServer& server) {
    config["zookeeper"]["servers"] = server.address();
    std::ofstream(file) << config;
  };
  const auto kv = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {KV_PROGRAM, "--config", file.string()});
    return RunProgram(words);
  };
  const ZooKeeperServer earlier;
  use(earlier);
  const Output as_before = kv({"backup", "restore", "--catalog", "--at", std::to_string(before_ms)});
  EXPECT_EQ(as_before.code, 0) << as_before.err;
  EXPECT_THAT(as_before.out, Not(HasSubstr("and the log after it")));
  EXPECT_THAT(kv({"dataset", "list"}).out, Not(HasSubstr("later")));
  EXPECT_THAT(kv({"backup", "restore", "--catalog", "--at", "2000-01-01"}).err,
              HasSubstr("there is none, finished by then,"));

  const ZooKeeperServer other;
  use(other);
  const Output restored = kv({"backup", "restore", "--catalog"});
  EXPECT_EQ(restored.code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("and the log after it"));
  // The catalog is that of the log's end: with what was created after the backup.
  EXPECT_THAT(kv({"dataset", "list"}).out, HasSubstr("later"));
  EXPECT_EQ(kv({"shards", "get"}).out, fleet().Ok({"shards", "get"}));
  EXPECT_THAT(kv({"get", "events", "row0-0"}).out, HasSubstr("c"));
  EXPECT_EQ(kv({"dataset", "create", "events"}).code, 1) << "is there";
}

}  // namespace
}  // namespace kvstore::testing
