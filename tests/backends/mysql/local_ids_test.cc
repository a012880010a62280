#include "tests/backends/mysql/test_fleet.h"

/// The next local IDs that a migration reads, so that the other side gives none a second time.
namespace kvstore::testing {
namespace {

TEST(LocalIds, TheNextOnesAreKnownAlsoWhereTheServerRemembersOlderStatistics) {
  const Opened dataset({.name = "pins", .shape = Shape::kObjects, .type = 1});
  const auto endpoint = *dataset.backend->OpenForMigration(dataset.spec);
  constexpr uint32_t kShard = 3;
  const auto create = [&] { return *dataset.objects->Create("{}", {.shard = kShard}); };
  for (int i = 0; i < 100; ++i) create();
  // MySQL remembers for a day what it answers here, for all sessions that do not say otherwise.
  const MariaDbServer& server = SharedFleet().OfShard(kShard);
  const std::string statistics =
      "SELECT auto_increment FROM information_schema.tables WHERE table_schema = 'db00003' AND table_name = "
      "'pins'";
  EXPECT_EQ(server.Run(statistics), "101\n");
  uint64_t last = 0;
  for (int i = 0; i < 100; ++i) last = create();
  if (OnMySql()) {
    EXPECT_EQ(server.Run(statistics), "101\n") << "it remembers nothing, and this test shows nothing";
  }
  const auto next = [&] { return endpoint->NextLocalIds()->shards.at(kShard); };
  EXPECT_EQ(next(), 201u);
  // IDs of objects that were erased are not given again either.
  server.Run("DELETE FROM db00003.pins WHERE local_id > 50");
  EXPECT_EQ(next(), 201u);
  EXPECT_GT(create(), last);
}

}  // namespace
}  // namespace kvstore::testing
