#include <filesystem>
#include <fstream>
#include <string_view>

#include "tests/migration/crossing_fixture.h"

/// Shards that are opened while a dataset migrates.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

/// A map of all shards of one server: the first `open`.
void OpenShards(uint32_t open) {
  for (const char* name : {"id.json", "mod.json"}) {
    if (std::string_view(name) == "mod.json" && open < TestFleet::kShards) continue;
    const auto path = SharedFleet().Map(name);
    std::ofstream(path.string() + ".next")
        << fmt::format(R"([{{"range": [0, {}], "master": "{}", "slave": "none1"}}])", open - 1,
                       SharedFleet().server(0).address());
    std::filesystem::rename(path.string() + ".next", path);
  }
}

class ShardsOpenedTest : public FaultyMySqlTest {
 protected:
  ShardsOpenedTest() { OpenShards(4); }
  ~ShardsOpenedTest() override {
    store_.reset();
    SharedFleet().WriteMaps(SharedFleet().server(0).address(), SharedFleet().server(1).address());
  }
  /// Gives a command as soon as both sides were compared again.
  void DoWhenCompared(const std::string& command) {
    EXPECT_TRUE(Eventually([&] { return store_->Try(command, "events").ok(); }))
        << store_->Do("status", "events").dump(1);
  }
  /// `count` more entries, of IDs of the first shards.
  void Add(uint64_t from, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(
          store_->router().AddMapping("events", from << 46 | 1 << 10 | 7, static_cast<uint64_t>(i) + 1, i));
    }
  }
  uint64_t CountOf(uint64_t from) {
    return store_->router().CountMapping("events", from << 46 | 1 << 10 | 7).value_or(0);
  }
  void AwaitShards(uint32_t open) {
    OpenShards(open);
    // As kv shards init does.
    auto backend = SharedFleet().OpenAsMapped();
    ASSERT_OK(backend);
    ASSERT_OK((*backend)->Init({}, nullptr));
    ASSERT_TRUE(Eventually([&] {
      const auto shards = store_->router().keeper().FindBackend("mysql");
      return (*shards)
                 ->OpenForMigration({.name = "events", .shape = Shape::kMappings, .backend = "mysql"})
                 .value()
                 ->Extent()
                 .value() == fmt::format("0-{}", open - 1);
    }));
  }
};

TEST_F(ShardsOpenedTest, BetweenReadyAndCutoverTheyAreTakenIn) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events", .shape = Shape::kMappings}));
  Add(0, 20);
  Add(3, 20);
  store.Do("create", "events", To("mysql"));
  store.Do("start", "events");
  store.Await("events", "ready");
  AwaitShards(8);
  DoWhenCompared("cutover");
  store.Await("events", "reversible");
  EXPECT_EQ(store.BackendOf("events"), "mysql");
  EXPECT_EQ(CountOf(0), 20u);
  EXPECT_EQ(CountOf(3), 20u);
  // Writes to the new shards are captured like those of the others: the way back has them.
  Add(5, 10);
  AwaitShards(12);
  EXPECT_TRUE(Eventually([&] {
    return store.router().AddMapping("events", uint64_t{9} << 46 | 1 << 10 | 7, 1, 1).ok();
  })) << "the worker makes it on the shards that were opened last";
  DoWhenCompared("reverse");
  store.Await("events", "ready");
  EXPECT_EQ(store.BackendOf("events"), "rocksdb");
  EXPECT_EQ(CountOf(0), 20u);
  EXPECT_EQ(CountOf(5), 10u);
  EXPECT_EQ(CountOf(9), 1u);
  // And a side that has moved takes new shards in, too.
  AwaitShards(16);
  Add(14, 3);
  DoWhenCompared("cutover");
  store.Await("events", "reversible");
  EXPECT_EQ(CountOf(14), 3u);
  EXPECT_EQ(CountOf(5), 10u);
  store.Do("finish", "events");
  store.Await("events", "finished");
  EXPECT_EQ(CountOf(9), 1u);
}

/// The embedded store would spread objects over more shards than the servers have.
TEST_F(ShardsOpenedTest, ObjectsThatAreMadeOnTheOtherSideFindTheirWayBack) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events", .shape = Shape::kObjects, .backend = "mysql"}));
  std::set<uint64_t> ids;
  const auto make = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const auto id = store.router().CreateObject("events", R"({"a": 1})", {});
      ASSERT_OK(id);
      EXPECT_TRUE(ids.insert(*id).second) << *id << " is given twice";
    }
  };
  make(40);
  store.Do("create", "events", To("rocksdb"));
  store.Do("start", "events");
  store.Await("events", "ready");
  store.Do("cutover", "events");
  store.Await("events", "reversible");
  make(40);
  store.Do("rollback", "events");
  store.Await("events", "aborted");
  make(10);
  for (const uint64_t id : ids) EXPECT_OK(store.router().GetObject("events", id, {})) << id;
}

TEST_F(ShardsOpenedTest, InTheMiddleOfACutoverTheyWait) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events", .shape = Shape::kMappings}));
  Add(0, 20);
  store.Do("create", "events", To("mysql"));
  store.Do("start", "events");
  store.Await("events", "ready");
  std::atomic<bool> opened{false};
  SetFailPointHook([&](std::string_view point) {
    if (point == "cutover.frozen" && !opened.exchange(true)) AwaitShards(8);
  });
  store.Do("cutover", "events", {});
  // It may have taken longer than writes may be held: then it was given up, and is asked for again.
  EXPECT_TRUE(Eventually([&] {
    if (store.PhaseOf("events") == "ready") store.Try("cutover", "events").IgnoreError();
    return store.PhaseOf("events") == "reversible";
  }));
  EXPECT_EQ(CountOf(0), 20u);
  EXPECT_TRUE(Eventually(
      [&] { return store.router().AddMapping("events", uint64_t{6} << 46 | 1 << 10 | 7, 1, 1).ok(); }));
  store.Do("rollback", "events");
  store.Await("events", "aborted");
  EXPECT_EQ(CountOf(0), 20u);
  EXPECT_EQ(CountOf(6), 1u);
}

}  // namespace
}  // namespace kvstore::testing
