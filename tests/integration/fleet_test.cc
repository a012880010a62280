#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "assembly/backend_config.h"
#include "assembly/fleet_init.h"
#include "coordination/zookeeper.h"
#include "idgen/object_id.h"
#include "kvstore_api/open.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/processes.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/zookeeper_server.h"

/// The whole store on a real ZooKeeper and real MySQL servers.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

/// A store on the shared fleet, whose maps are in ZooKeeper.
class FleetStoreTest : public ::testing::Test {
 protected:
  FleetStoreTest() {
    SharedFleet().Clear();
    ZooKeeper zookeeper({.servers = zookeeper_.address()}, nullptr);
    for (const char* node : {kId, kMod}) EXPECT_OK(zookeeper.Create(node, Map()));
  }

  /// Shards 0..7 on the first server, 8..15 on the second.
  static std::string Map(const std::string& first = SharedFleet().server(0).address()) {
    return fmt::format(
        R"([{{"range": [0, 7], "master": "{}", "slave": "none1"}}, {{"range": [8, 15], "master": "{}", "slave": "none2"}}])",
        first, SharedFleet().server(1).address());
  }

  void SetMap(const char* node, const std::string& text) {
    ZooKeeper zookeeper({.servers = zookeeper_.address()}, nullptr);
    ASSERT_OK_AND_ASSIGN(const ZooKeeperNode current, zookeeper.Get(node, false));
    ASSERT_OK(zookeeper.Set(node, text, current.version));
  }

  OpenOptions Options() const {
    OpenOptions options{.data = dir_ / "store", .default_backend = kMySql};
    MySqlFleetOptions fleet{.options = TestFleet::Options(), .zookeeper = {.servers = zookeeper_.address()}};
    fleet.zookeeper.call_timeout_ms = 2'000;
    options.backends.push_back({.name = kMySql, .type = kMySql, .options = fleet});
    return options;
  }
  void Open() {
    store_.reset();
    auto opened = kvstore::Open(Options());
    ASSERT_OK(opened);
    store_ = *std::move(opened);
  }

  static constexpr char kId[] = "/kvstore/shards/id";
  static constexpr char kMod[] = "/kvstore/shards/mod";
  const TempDir dir_;
  ZooKeeperServer zookeeper_;
  std::unique_ptr<KVStore> store_;
};

absl::Status Put(KVStore& store, const std::string& value) {
  const CellWrite cell{"x", value, std::nullopt};
  return store.PutRow("events", "user", {&cell, 1}, {}).status();
}
std::string Get(KVStore& store) { return store.GetRow("events", "user", {})->items.at(0).cells.at(0).value; }

TEST_F(FleetStoreTest, ZooKeeperMayBeDownForTheWholeRun) {
  Open();
  ASSERT_OK(store_->CreateDataset({.name = "events"}));
  ASSERT_OK(Put(*store_, "1"));
  zookeeper_.Stop();
  EXPECT_EQ(Get(*store_), "1");
  ASSERT_OK(Put(*store_, "2"));
  // The same holds for a process that starts meanwhile.
  Open();
  EXPECT_EQ(Get(*store_), "2");
  ASSERT_OK(Put(*store_, "3"));
  zookeeper_.Start();
  // An edit comes into force once it is back: shards of the first server are found through a proxy.
  TcpProxy proxy(SharedFleet().server(0).port());
  SetMap(kMod, Map(proxy.address()));
  const auto through_the_proxy = [&] {
    proxy.Cut();
    bool failed = false;
    for (int i = 0; i < 20; ++i) {
      failed = failed || !store_->GetRow("events", std::to_string(i), {}).ok();
    }
    proxy.Mend();
    return failed;
  };
  EXPECT_TRUE(Eventually(through_the_proxy));
}

TEST_F(FleetStoreTest, AProcessThatHasNotHeardOfADropMeetsNothingOfTheNextDataset) {
  TcpProxy proxy(
      static_cast<uint16_t>(std::stoi(zookeeper_.address().substr(zookeeper_.address().rfind(':') + 1))));
  const auto open = [&](const std::string& name, const std::string& zookeeper) {
    OpenOptions options = Options();
    options.data = dir_ / name;
    std::erase_if(options.backends, [](const BackendConfig& backend) { return backend.type == kRocksDb; });
    MySqlFleetOptions& fleet = *FindFleet(options);
    fleet.zookeeper.servers = zookeeper;
    options.coordination = Coordination{.zookeeper = fleet.zookeeper};
    return *kvstore::Open(options);
  };
  const auto one = open("one", zookeeper_.address());
  const auto stale = open("stale", proxy.address());
  const CellWrite old{"x", "old", std::nullopt};
  for (const char* name : {"events", "more"})
    ASSERT_OK(one->CreateDataset({.name = name, .max_versions = 0}));
  EXPECT_EQ(one->GetDataset("events")->table, "");
  for (const char* name : {"events", "more"}) {
    ASSERT_TRUE(Eventually([&] { return stale->PutRow(name, "user", {&old, 1}, {}).ok(); }));
  }
  proxy.Cut();
  ASSERT_OK(one->DropDataset("events", {}));
  ASSERT_OK(one->CreateDataset({.name = "events", .max_versions = 0}));
  EXPECT_EQ(one->GetDataset("events")->table, "events@2");
  ASSERT_OK(Put(*one, "new"));
  // The process gets an error; it must not write to or read from a table that it does not know.
  EXPECT_FALSE(stale->PutRow("events", "user", {&old, 1}, {}).ok());
  EXPECT_FALSE(stale->GetRow("events", "user", {}).ok());
  EXPECT_FALSE(stale->DeleteRow("events", "user", {}).ok());
  EXPECT_EQ(one->GetRow("events", "user", {.versions = 9})->items.at(0).cells.size(), 1u);
  EXPECT_EQ(Get(*one), "new");
  EXPECT_OK(stale->PutRow("more", "user", {&old, 1}, {})) << "what it knows is served";
  proxy.Mend();
  EXPECT_TRUE(Eventually([&] { return stale->GetRow("events", "user", {}).ok(); }));
  EXPECT_EQ(Get(*stale), "new");
}

TEST_F(FleetStoreTest, ABadEditLeavesTheGoodMapInForce) {
  Open();
  ASSERT_OK(store_->CreateDataset({.name = "events"}));
  for (const std::string& bad : {std::string("[]"), std::string("not JSON"),
                                 std::string(R"([{"range": [0, 14], "master": "A", "slave": "B"}])")}) {
    SetMap(kMod, bad);
    for (int i = 0; i < 50; ++i) ASSERT_OK(Put(*store_, "v"));
  }
  // A process that starts does not accept the map either.
  Open();
  EXPECT_EQ(Get(*store_), "v");
}

TEST_F(FleetStoreTest, InitMakesNoShardThatAnotherHostHas) {
  Open();
  ASSERT_OK(store_->CreateDataset({.name = "events"}));
  ASSERT_OK(Put(*store_, "1"));
  const std::string& wrong = SharedFleet().server(1).address();
  SetMap(kMod, Map(wrong));
  const absl::Status refused = InitShards(Options(), nullptr, nullptr);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(),
              ::testing::HasSubstr("mod00000: by the shard map this database is at " + wrong));
  EXPECT_EQ(SharedFleet().server(1).Run("SHOW DATABASES LIKE 'mod00000'"), "") << "nothing was made";
  SetMap(kMod, Map());
  ASSERT_OK(InitShards(Options(), nullptr, nullptr));
  EXPECT_EQ(Get(*store_), "1");
}

TEST_F(FleetStoreTest, InitMakesNoShardThatAnotherHostHasAlthoughNothingIsStoredThere) {
  MariaDbServer& wrong = SharedFleet().server(1);
  SetMap(kMod, Map(wrong.address()));
  const absl::Status refused = InitShards(Options(), nullptr, nullptr);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(),
              ::testing::HasSubstr("mod00000: by the shard map this database is at " + wrong.address()));
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("kv shards undo"));
  EXPECT_EQ(wrong.Run("SHOW DATABASES LIKE 'mod00000'"), "") << "nothing was made";
  // An operator who knows that the map is right says so.
  ASSERT_OK(InitShards(Options(), nullptr, nullptr, /*ignore_empty=*/true));
  EXPECT_NE(wrong.Run("SHOW DATABASES LIKE 'mod00000'"), "");
  for (int shard = 0; shard < 8; ++shard) wrong.Run(fmt::format("DROP DATABASE mod{:05}", shard));
}

TEST_F(FleetStoreTest, BothBackendsInOneStore) {
  Open();
  ASSERT_OK(store_->CreateDataset({.name = "events"}));
  ASSERT_OK(store_->CreateDataset({.name = "local", .backend = "rocksdb"}));
  ASSERT_OK(Put(*store_, "fleet"));
  const CellWrite cell{"x", "embedded", std::nullopt};
  ASSERT_OK(store_->PutRow("local", "user", {&cell, 1}, {}));
  Open();
  EXPECT_EQ(Get(*store_), "fleet");
  EXPECT_EQ(store_->GetRow("local", "user", {})->items.at(0).cells.at(0).value, "embedded");
  EXPECT_EQ(store_->GetDataset("events")->backend, "mysql");
}

TEST_F(FleetStoreTest, TheJoinOfAMappingAndItsObjects) {
  Open();
  ASSERT_OK(store_->CreateDataset({.name = "boards", .shape = Shape::kObjects, .type = 2}));
  ASSERT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects, .type = 1}));
  ASSERT_OK(store_->CreateDataset({.name = "board_has_pins", .shape = Shape::kMappings}));
  ASSERT_OK_AND_ASSIGN(const uint64_t board, store_->CreateObject("boards", "{}", {}));
  for (uint64_t i = 0; i < 20; ++i) {
    const CreateOptions place = i < 10 ? CreateOptions{.near = board} : CreateOptions{};
    ASSERT_OK_AND_ASSIGN(const uint64_t pin,
                         store_->CreateObject("pins", fmt::format(R"({{"n":{}}})", i), place));
    EXPECT_TRUE(i >= 10 || ObjectId::FromValue(pin)->shard() == ObjectId::FromValue(board)->shard());
    ASSERT_OK(store_->AddMapping("board_has_pins", board, pin, i));
  }
  ASSERT_OK_AND_ASSIGN(JoinedPage page, store_->ListObjects("board_has_pins", board, {.limit = 15}));
  ASSERT_EQ(page.objects.size(), 15u);
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(page.objects[i].object->data, fmt::format(R"({{"n":{}}})", i));
  ASSERT_OK_AND_ASSIGN(page,
                       store_->ListObjects("board_has_pins", board, {.limit = 15, .marker = page.marker}));
  EXPECT_EQ(page.objects.size(), 5u);
  EXPECT_EQ(page.marker, "");
}

TEST_F(FleetStoreTest, BadRequestsChangeNothing) {
  Open();
  ASSERT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects, .type = 1}));
  ASSERT_OK(store_->CreateDataset({.name = "likes", .shape = Shape::kMappings}));
  ASSERT_OK_AND_ASSIGN(const uint64_t id, store_->CreateObject("pins", R"({"a":1})", {.shard = 3}));
  const uint64_t other_type = ObjectId::Make(3, 2, 1)->value();
  const uint64_t closed = ObjectId::Make(16, 1, 1)->value();
  EXPECT_THAT(store_->GetObject("pins", other_type, {}),
              FailsWith(kInvalid, "has type 2, dataset 'pins' has type 1"));
  EXPECT_THAT(store_->GetObject("pins", closed, {}), FailsWith(kInvalid, "shard 16 is not open"));
  EXPECT_THAT(store_->PatchObject("pins", closed, "{}", {}), FailsWith(kInvalid, "shard 16 is not open"));
  EXPECT_THAT(store_->PatchObject("pins", id + 1, "{}", {}), FailsWith(kNotFound, "there is no object"));
  EXPECT_THAT(store_->PatchObject("pins", id, "[]", {}), FailsWith(kInvalid, "merge_patch"));
  EXPECT_THAT(store_->CreateObject("pins", "[1]", {}), FailsWith(kInvalid, ""));
  EXPECT_THAT(store_->CreateObject("pins", "{", {}), FailsWith(kInvalid, ""));
  EXPECT_THAT(store_->AddMapping("likes", id, id, uint64_t{1} << 63), FailsWith(kInvalid, "sequence"));
  EXPECT_EQ(*store_->CountMapping("likes", id), 0u);
  EXPECT_EQ(store_->GetObject("pins", id, {})->data, R"({"a":1})");
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    const std::string table = mysql::DatabaseName(ShardSpace::kId, shard) + ".pins";
    EXPECT_EQ(SharedFleet().OfShard(shard).Run("SELECT COUNT(*) FROM " + table), shard == 3 ? "1\n" : "0\n");
  }
}

TEST_F(FleetStoreTest, AHostThatIsDownDoesNotKeepAStoreFromOpening) {
  Open();
  ASSERT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects, .type = 1}));
  ASSERT_OK(store_->CreateDataset({.name = "gone", .shape = Shape::kObjects, .type = 2}));
  ASSERT_OK_AND_ASSIGN(const uint64_t id, store_->CreateObject("pins", "{}", {.shard = 8}));
  ASSERT_OK(store_->CreateObject("gone", "{}", {.shard = 0}));
  SharedFleet().server(0).Kill();
  EXPECT_THAT(store_->DropDataset("gone", {}), FailsWith(absl::StatusCode::kUnavailable, "db00000"));
  Open();
  EXPECT_OK(store_->GetObject("pins", id, {}));
  EXPECT_THAT(store_->GetDataset("gone"), FailsWith(kNotFound, "gone"));
  SharedFleet().server(0).Start();
  // A later start finishes the drop; one of the same name is empty either way.
  Open();
  EXPECT_EQ(
      SharedFleet().server(0).Run("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'gone'"),
      "0\n");
}

// ---- the program ----

class Program : public FleetStoreTest {
 protected:
  Output Kv(std::vector<std::string> arguments, const std::string& input = "") {
    std::ofstream(dir_ / "kv.json") << fmt::format(
        R"({{"data": "store", "default_backend": "mysql", "mysql": {{"user": "root", "zookeeper": "{}", "purge_cells_per_s": 0}}}})",
        zookeeper_.address());
    arguments.insert(arguments.begin(), {KV_PROGRAM, "--config", (dir_ / "kv.json").string()});
    return RunProgram(arguments, input);
  }
};

TEST_F(Program, BeginsWithInitAndGoesOnAsEmbedded) {
  const Output init = Kv({"shards", "init"});
  EXPECT_EQ(init.code, 0) << init.err;
  EXPECT_THAT(init.out, ::testing::StartsWith("32 shards are there"));
  EXPECT_EQ(Kv({"dataset", "create", "events"}).code, 0);
  EXPECT_EQ(Kv({"put", "events", "user:7", "click=pin:3", "--timestamp", "5"}).code, 0);
  EXPECT_EQ(Kv({"put", "events", "user:7", "click=pin:4", "--timestamp", "6"}).code, 0);
  EXPECT_THAT(Kv({"get", "events", "user:7"}).out, ::testing::HasSubstr("pin:4"));
  const std::string requests = R"({"op":"scan_rows","dataset":"events","partition":"mod00077"})"
                               "\n"
                               R"({"op":"scan_rows","dataset":"events"})"
                               "\n";
  const Output scanned = Kv({"exec"}, requests);
  EXPECT_THAT(scanned.out, ::testing::HasSubstr("partition: there is none named"));
  EXPECT_THAT(scanned.out, ::testing::HasSubstr("user:7"));
  EXPECT_THAT(Kv({"purge", "events"}).out, ::testing::HasSubstr("0 expired and 1 surplus cells removed"));
  // Runs it again, with the datasets that exist by now.
  SharedFleet().server(0).Run("DROP DATABASE mod00001");
  EXPECT_EQ(Kv({"shards", "init"}).code, 0);
  EXPECT_EQ(SharedFleet().server(0).Run("SELECT COUNT(*) FROM mod00001.events"), "0\n");
}

TEST_F(Program, AnExportIsImportedOnEitherSide) {
  ASSERT_EQ(Kv({"shards", "init"}).code, 0);
  std::string lines;
  for (int i = 0; i < 100; ++i) {
    lines += fmt::format(
        R"({{"row":"r{}","items":[{{"column":"x","value":{{"b64":"AP8="}},"timestamp":{}}},)"
        R"({{"column":"x","value":"","timestamp":7}},{{"column":"","value":"v","timestamp":0}}]}})"
        "\n",
        i, 100 + i);
  }
  for (const char* dataset : {"events", "back"}) {
    ASSERT_EQ(Kv({"dataset", "create", dataset, "--max-versions", "0", "--backend", "mysql"}).code, 0);
  }
  ASSERT_EQ(Kv({"dataset", "create", "embedded", "--max-versions", "0", "--backend", "rocksdb"}).code, 0);
  ASSERT_EQ(Kv({"import", "events"}, lines).code, 0);
  const auto copy = [&](const std::string& from, const std::string& to) {
    const Output exported = Kv({"export", from});
    EXPECT_EQ(exported.code, 0) << exported.err;
    const Output imported = Kv({"import", to}, exported.out);
    EXPECT_EQ(imported.code, 0) << imported.err;
    EXPECT_THAT(imported.out, ::testing::StartsWith("101 lines: 100 imported, 0 rejected, 1 marker"));
  };
  copy("events", "embedded");
  copy("embedded", "back");
  const std::string rows = Kv({"export", "events"}).out;
  EXPECT_EQ(Kv({"export", "back"}).out, rows);
  // Shards are read one after the other, an embedded store in the order of all keys.
  const auto set_of_lines = [](const std::string& text) {
    std::stringstream stream(text);
    std::set<std::string> set;
    for (std::string line; std::getline(stream, line);) set.insert(line);
    return set;
  };
  EXPECT_EQ(set_of_lines(Kv({"export", "embedded"}).out), set_of_lines(rows));
}

TEST_F(Program, WithoutInitSaysWhatToDo) {
  SharedFleet().server(0).Run("DROP DATABASE mod00000");
  const Output created = Kv({"dataset", "create", "events"});
  EXPECT_EQ(created.code, 1);
  EXPECT_THAT(created.err, ::testing::HasSubstr("kv shards init"));
  EXPECT_THAT(Kv({"dataset", "list"}).out, ::testing::Not(::testing::HasSubstr("events")));
}

}  // namespace
}  // namespace kvstore::testing
