#include "tests/fleet_backup/backed_up_fleet.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <utility>

#include "assembly/config.h"
#include "assembly/open_router.h"
#include "backend_api/unit_key.h"
#include "base/big_endian.h"
#include "base/clock.h"
#include "blobstore/open_blob_store.h"
#include "catalog/zookeeper_nodes.h"
#include "idgen/object_id.h"
#include "shardmap/mod_shard.h"
#include "tests/backup/units_of.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kDatasets[] = {"pins", "boards", "events"};

std::unique_ptr<Router> OpenStoreOf(const std::filesystem::path& config) {
  const auto read = ReadConfig(config);
  EXPECT_OK(read);
  auto router = OpenRouter(read->store);
  EXPECT_OK(router);
  return router.ok() ? *std::move(router) : nullptr;
}

uint32_t ShardOfUnit(const Unit& unit, ShardSpace space) {
  if (space == ShardSpace::kId) return ObjectId::ShardOf(ReadBigEndian<uint64_t>(unit.key));
  return ModShard(ParseRowUnitKey(unit.key)->row, PairFleet::kShards);
}

}  // namespace

BackedUpFleet::BackedUpFleet() {
  pair_.WriteConfig(config());
  std::ifstream in(config());
  Json json = Json::parse(in);
  json["backup"] = {{"to", url()}};
  std::ofstream(config()) << json;
  store_ = OpenStoreOf(config());
  EXPECT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
  EXPECT_OK(store_->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
  EXPECT_OK(store_->CreateDataset({.name = "events", .max_versions = 0}));
}

fleet_backup::BlobOpener BackedUpFleet::opener() const {
  return [url = url()] { return OpenBlobStore(url); };
}

std::unique_ptr<BlobStore> BackedUpFleet::OpenBlobs() const {
  auto blobs = fleet_backup::OpenPairBackups(opener(), /*domain=*/1);
  EXPECT_OK(blobs);
  return *std::move(blobs);
}

Output BackedUpFleet::Kv(const std::vector<std::string>& arguments, const std::string& fail_point) const {
  std::vector<std::string> command = {KV_PROGRAM, "--config", config().string()};
  if (!fail_point.empty()) command.insert(command.begin(), {"env", "KV_FAIL_POINT=" + fail_point});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunProgram(command);
}

std::string BackedUpFleet::Ok(const std::vector<std::string>& arguments) const {
  const Output output = Kv(arguments);
  EXPECT_EQ(output.code, 0) << ::testing::PrintToString(arguments) << ": " << output.err;
  return output.out;
}

Json BackedUpFleet::OkJson(std::vector<std::string> arguments) const {
  arguments.emplace_back("--json");
  return Json::parse(Ok(arguments), nullptr, /*allow_exceptions=*/false);
}

void BackedUpFleet::Fails(const std::vector<std::string>& arguments, const std::string& text) const {
  const Output output = Kv(arguments);
  EXPECT_EQ(output.code, 1) << ::testing::PrintToString(arguments) << ": " << output.out;
  EXPECT_THAT(output.err, ::testing::HasSubstr(text));
}

void BackedUpFleet::Write(const std::string& round) {
  for (uint32_t shard = 0; shard < PairFleet::kShards; ++shard) {
    const std::string document = fmt::format(R"({{"round":"{}"}})", round);
    const auto id = store_->CreateObject("pins", document, {.shard = shard});
    ASSERT_OK(id);
    ASSERT_OK(store_->AddMapping("boards", *id, *id + 1, 1));
    for (int i = 0; i < 4; ++i) {
      const CellWrite cell{"c", round, std::nullopt};
      ASSERT_OK(store_->PutRow("events", fmt::format("row{}-{}", shard, i), {&cell, 1}, {}));
    }
  }
}

std::vector<std::vector<Unit>> BackedUpFleet::UnitsIn(Router& store) {
  std::vector<std::vector<Unit>> units;
  for (const char* const dataset : kDatasets) {
    const bool is_there = store.keeper().LoadEntry(dataset).ok();
    units.push_back(is_there ? UnitsOf(store, dataset) : std::vector<Unit>());
  }
  return units;
}

absl::Status BackedUpFleet::Ship() {
  AwaitSlave();
  const auto blobs = OpenBlobs();
  SharedNodesReader nodes({.servers = pair_.zookeeper().address()}, pair_.fleet().root);
  fleet_backup::BinlogShipper shipper(*blobs, pair_.fleet().access,
                                      {.domain = 1, .nodes = [&nodes] { return nodes.Text(); }});
  return shipper.Ship(pair_.Master() == pair_.host_a() ? pair_.host_b() : pair_.host_a());
}

void BackedUpFleet::AwaitSlave() {
  const bool a_leads = pair_.Master() == pair_.host_a();
  MariaDbServer& master = a_leads ? pair_.a() : pair_.b();
  MariaDbServer& slave = a_leads ? pair_.b() : pair_.a();
  EXPECT_TRUE(Eventually(
      [&] { return slave.Run("SELECT @@gtid_current_pos") == master.Run("SELECT @@gtid_current_pos"); }));
}

void BackedUpFleet::PurgeLogs(MariaDbServer& server) {
  EXPECT_TRUE(Eventually([&] {
    server.Run("FLUSH BINARY LOGS");
    const std::string logs = server.Run("SHOW BINARY LOGS");
    const size_t last = logs.rfind("binlog.");
    server.Run("PURGE BINARY LOGS TO '" + logs.substr(last, logs.find('\t', last) - last) + "'");
    return server.Run("SHOW BINARY LOGS").find("binlog.") == server.Run("SHOW BINARY LOGS").rfind("binlog.");
  }));
}

uint64_t NextSecond() {
  const uint64_t now_s = WallClockMs() / 1000;
  EXPECT_TRUE(Eventually([now_s] { return WallClockMs() / 1000 > now_s; }));
  return WallClockMs() / 1000 * 1000;
}

std::vector<std::vector<Unit>> OfShards(std::vector<std::vector<Unit>> units,
                                        const shardops::MoveRange& shards) {
  for (size_t i = 0; i < units.size(); ++i) {
    const ShardSpace space = std::string_view(kDatasets[i]) == "events" ? ShardSpace::kMod : ShardSpace::kId;
    std::erase_if(units[i], [&](const Unit& unit) {
      return space != shards.space || !shards.Contains(ShardOfUnit(unit, space));
    });
  }
  return units;
}

LookedAt::LookedAt(const std::filesystem::path& folder) : folder_(folder) {
  const std::string options = "--defaults-file=" + (folder / "my.cnf").string();
  process_ = ForkProgram({"mariadbd", options}, (folder / "out").string());
  AwaitServer(process_, "MariaDB", folder / "server.log", [&] {
    return RunProgram({"mariadb-admin", options, "ping"}).code == 0;
  });
}

LookedAt::~LookedAt() {
  if (process_ > 0) Kill(process_);
}

std::vector<std::vector<Unit>> LookedAt::Units() {
  const auto store = OpenStoreOf(folder_ / "kv.json");
  return store == nullptr ? std::vector<std::vector<Unit>>() : BackedUpFleet::UnitsIn(*store);
}

}  // namespace kvstore::testing
