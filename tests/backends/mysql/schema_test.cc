#include <string>
#include <vector>

#include "shardmap/mod_shard.h"
#include "tests/backends/mysql/test_fleet.h"

/// Databases, tables and connections that are not as they should be.
namespace kvstore::testing {
namespace {

TEST(Schema, InitMakesWhatIsMissingAndLeavesTheRest) {
  Opened dataset({.name = "events"});
  ASSERT_OK(PutCell(*dataset.rows, "r", "x", "v", 1));
  SharedFleet().OfShard(2).Run("DROP DATABASE mod00002");
  uint64_t last = 0;
  ASSERT_OK(dataset.backend->Init([&] { return std::vector{dataset.spec}; },
                                  [&](uint64_t done, uint64_t total) {
                                    last = done;
                                    EXPECT_EQ(total, 2 * TestFleet::kShards);
                                    return true;
                                  }));
  EXPECT_EQ(last, 2 * TestFleet::kShards);
  EXPECT_EQ(SharedFleet().OfShard(2).Run("SELECT COUNT(*) FROM mod00002.events"), "0\n");
  EXPECT_EQ(Read(*dataset.rows, "r"), "x@1=v");
}

TEST(Schema, AMissingTableIsToldWithShardAndHost) {
  Opened dataset({.name = "events"});
  const uint32_t shard = ModShard("r", TestFleet::kShards);
  MariaDbServer& server = SharedFleet().OfShard(shard);
  server.Run("DROP TABLE " + mysql::DatabaseName(ShardSpace::kMod, shard) + ".events");
  EXPECT_THAT(dataset.rows->Get("r", {}, std::nullopt),
              FailsWith(absl::StatusCode::kFailedPrecondition, "at " + server.address()));
  EXPECT_THAT(dataset.rows->Get("r", {}, std::nullopt),
              FailsWith(absl::StatusCode::kFailedPrecondition, "kv shards init"));
}

TEST(Schema, AnotherNumberOfModShardsIsRefused) {
  Opened dataset({.name = "events"});
  for (uint32_t shard : {0, 8}) {
    SharedFleet().OfShard(shard).Run("ALTER TABLE " + mysql::DatabaseName(ShardSpace::kMod, shard) +
                                     ".`kv$clock` COMMENT 'kvstore mod_shards=32'");
  }
  EXPECT_THAT(dataset.backend->OpenRows(dataset.spec),
              FailsWith(absl::StatusCode::kFailedPrecondition, "made with 32"));
  for (uint32_t shard : {0, 8}) {
    SharedFleet().OfShard(shard).Run("ALTER TABLE " + mysql::DatabaseName(ShardSpace::kMod, shard) +
                                     ".`kv$clock` COMMENT 'kvstore mod_shards=16'");
  }
}

TEST(Schema, AnUnknownEngineIsRefused) {
  Opened dataset({.name = "events"});
  DatasetSpec spec{.name = "odd", .backend = "mysql", .engine = "csv", .incarnation = 7};
  EXPECT_THAT(dataset.backend->CreateDataset(spec),
              FailsWith(absl::StatusCode::kInvalidArgument, "engine: 'csv'"));
}

TEST(Tls, AServerWithoutItIsRefused) {
  // A MySQL server makes itself a certificate, unless no version of TLS is allowed.
  TestFleet fleet(OnMySql() ? std::vector<std::string>{"--tls-version="} : std::vector<std::string>{});
  if (!OnMySql() && fleet.server(0).Run("SELECT @@have_ssl") == "YES\n") {
    GTEST_SKIP() << "a server of MariaDB 11.4 or later makes itself a certificate";
  }
  auto options = TestFleet::Options();
  options.tls.required = true;
  const auto backend = *fleet.Open(options);
  EXPECT_THAT(backend->Init(nullptr, nullptr), FailsWith(absl::StatusCode::kFailedPrecondition, "tls"));
}

}  // namespace
}  // namespace kvstore::testing
