#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/fail_point.h"
#include "tests/migration/crossing_fixture.h"
#include "tests/support/random.h"

/// Shadow reads: reads of callers that are made on both sides, and compared.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

constexpr uint32_t kAllReads = ReadTaps::kAll;

Json Shadowed(const std::string& target, uint32_t share = kAllReads) {
  Json options = To(target);
  options["shadow_share"] = share;
  return options;
}

class ShadowTest : public FaultyMySqlTest {
 protected:
  Json Shadow() { return store_->Do("status", "events")["shadow"]; }
  absl::Status Get(const std::string& row) { return store_->router().GetRow("events", row, {}).status(); }
  /// Reads the row until shadow reads have found as many differences, in all.
  bool ReadUntilFound(const std::string& row, uint64_t differences) {
    return Eventually([&] {
      EXPECT_OK(Get(row));
      return Shadow()["differences"] >= differences;
    });
  }
  /// Changes a row of the copy on MySQL behind the migration's back.
  static void Spoil(const std::string& row) {
    for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
      SharedFleet().OfShard(shard).Run(
          fmt::format("DELETE FROM `mod{:05}`.`events$away` WHERE row_key = '{}'", shard, row));
    }
  }
};

TEST_F(ShadowTest, FindAPlantedDifferenceAndHoldUpTheCutover) {
  MigratingStore& store = OpenReady(Shadowed("mysql"));
  // Reads are only noticed shortly after the migration is ready.
  ASSERT_TRUE(Eventually([&] {
    for (int i = 0; i < 10; ++i) EXPECT_OK(Get(fmt::format("row{:03}", i)));
    return Shadow()["compared"] > 0;
  })) << store.Do("status", "events").dump(1);
  EXPECT_EQ(Shadow()["differences"], 0);
  Spoil("row003");
  ASSERT_TRUE(ReadUntilFound("row003", 1)) << store.Do("status", "events").dump(1);
  EXPECT_EQ(Shadow()["examples"][0], "row 'row003' column 'c'");
  EXPECT_TRUE(Eventually([&] {
    return store.Do("status", "events")["events"].dump().find(
               "shadow reads: 1 units differ on the two sides") != std::string::npos;
  }));
  EXPECT_OK(Get("row003"));
  EXPECT_THAT(store.Try("cutover", "events"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "for example row 'row003' column 'c'"));
  EXPECT_EQ(store.Do("status", "events")["next"][0], "verify");
  // Another process that takes over knows of it.
  Open();
  EXPECT_THAT(store_->Try("cutover", "events"), FailsWith(absl::StatusCode::kFailedPrecondition, "differ"));
  store_->Do("verify", "events");
  ASSERT_TRUE(Eventually([&] { return Shadow()["open"] == 0; }));
  store_->Await("events", "ready");
  EXPECT_EQ(store_->Do("status", "events")["repaired"], 1);
  EXPECT_GE(Shadow()["differences"], 1) << "they are not forgotten";
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  EXPECT_EQ(Count("row", 10), 10);
}

/// A cutover is asked for, and a difference is found after the last look at what shadow reads have found.
TEST_F(ShadowTest, WhatIsFoundLastHoldsUpTheCutoverToo) {
  MigratingStore& store = OpenReady(Shadowed("mysql"));
  std::atomic<bool> asked{false};
  std::atomic<bool> compared{false};
  SetFailPointHook([&](std::string_view name) {
    if (name == "shadow.compared") compared = true;
    if (name != "follow.asked" || asked.exchange(true)) return;
    Spoil("row003");
    EXPECT_OK(Get("row003"));
    EXPECT_TRUE(Eventually([&] { return compared.load(); }));
    EXPECT_EQ(Shadow()["differences"], 0);
  });
  store.Do("cutover", "events");
  EXPECT_TRUE(Eventually([&] {
    return store.Do("status", "events")["problem"].dump().find("the cutover did not begin") !=
           std::string::npos;
  })) << store.Do("status", "events").dump(1);
  SetFailPointHook(nullptr);
  EXPECT_EQ(store.Do("status", "events")["phase"], "ready");
  EXPECT_EQ(Shadow()["open"], 1);
  EXPECT_EQ(Shadow()["examples"][0], "row 'row003' column 'c'");
}

TEST_F(ShadowTest, AnOperatorMayCutOverAllTheSame) {
  MigratingStore& store = OpenReady(Shadowed("mysql"));
  Spoil("row003");
  ASSERT_TRUE(ReadUntilFound("row003", 1));
  store.Do("throttle", "events", {{"shadow_share", 0}});
  store.Do("cutover", "events", {{"accept_differences", true}});
  store.Await("events", "reversible");
  EXPECT_EQ(Count("row", 10), 9);
}

TEST_F(ShadowTest, AreRefusedWhereTheyWouldHaveNoTime) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events"}));
  Json options = Shadowed("mysql");
  options["auto"] = true;
  EXPECT_THAT(store.Try("create", "events", options),
              FailsWith(absl::StatusCode::kInvalidArgument, "shadow_share: with --auto"));
  options["auto"] = false;
  options["shadow_share"] = kAllReads + 1;
  EXPECT_THAT(store.Try("create", "events", options),
              FailsWith(absl::StatusCode::kInvalidArgument, "shadow_share"));
}

/// Clients write and read all the time; whatever is in flight explains what differs.
TEST_F(ShadowTest, RaiseNoFalseAlarmUnderLoad) {
  for (const char* const from : {"rocksdb", "mysql"}) {
    SCOPED_TRACE(from);
    MigratingStore& store = Open();
    const std::string to = from == std::string("mysql") ? "rocksdb" : "mysql";
    ASSERT_OK(store.router().CreateDataset({.name = "events", .backend = from}));
    History history(Clients::kKeys);
    {
      Clients clients(store.router(), "events", history, 4, Seed("shadow"));
      clients.Work(50);
      store.Do("create", "events", Shadowed(to));
      store.Do("start", "events");
      store.Await("events", "ready");
      // Until much was compared, by reads which know what the writers write.
      for (const int most : {500, 1000, 1500, 2000}) {
        ASSERT_TRUE(Eventually([&] { return Shadow()["compared"] > most; })) << Shadow();
      }
      EXPECT_EQ(Shadow()["differences"], 0) << store.Do("status", "events").dump(1);
      store.Do("cutover", "events");
      store.Await("events", "reversible");
      clients.Work(20);
      clients.Stop();
      EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
    }
    EXPECT_EQ(history.Check(), std::nullopt);
    store.Do("finish", "events");
    store.Await("events", "finished");
    ASSERT_OK(store.router().DropDataset("events", {}));
  }
}

TEST_F(ShadowTest, AreOfObjectsAndMappingsToo) {
  MigratingStore& store = Open();
  ASSERT_OK(
      store.router().CreateDataset({.name = "events", .shape = Shape::kMappings, .backend = "rocksdb"}));
  for (uint64_t to = 1; to <= 5; ++to) {
    ASSERT_OK(store.router().AddMapping("events", 7, to, {}));
  }
  store.Do("create", "events", Shadowed("mysql"));
  store.Do("start", "events");
  store.Await("events", "ready");
  // The shard is in the ID.
  SharedFleet().OfShard(0).Run("DELETE FROM `db00000`.`events$away` WHERE from_id = 7 AND to_id = 3");
  ASSERT_TRUE(Eventually([&] {
    EXPECT_OK(store.router().ListMapping("events", 7, {}).status());
    return Shadow()["differences"] >= 1;
  })) << store.Do("status", "events").dump(1);
  EXPECT_EQ(Shadow()["examples"][0], "mapping 7 -> 3");
}

/// A side that answers no reads until it is let go.
class HangingReads : public ForwardingEndpoint {
 public:
  struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool shut = false;
    int waiting = 0;
    void Set(bool now) {
      const std::lock_guard lock(mutex);
      shut = now;
      opened.notify_all();
    }
    int Waiting() {
      const std::lock_guard lock(mutex);
      return waiting;
    }
  };
  HangingReads(std::unique_ptr<MigrationEndpoint> wrapped, Gate& gate)
      : ForwardingEndpoint(std::move(wrapped)), gate_(gate) {}
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    {
      std::unique_lock lock(gate_.mutex);
      ++gate_.waiting;
      gate_.opened.wait(lock, [this] { return !gate_.shut; });
      --gate_.waiting;
    }
    return inner->Read(keys, as_of);
  }

 private:
  Gate& gate_;
};

TEST_F(ShadowTest, DoNotHoldUpCallersWhereASideHangs) {
  HangingReads::Gate gate;
  store_ = std::make_unique<MigratingStore>(
      dir_.path(), [&](std::unique_ptr<MigrationEndpoint> endpoint) -> std::unique_ptr<MigrationEndpoint> {
        if (endpoint->Extent().value_or("").empty()) return endpoint;
        return std::make_unique<HangingReads>(std::move(endpoint), gate);
      });
  ASSERT_OK(store_->router().CreateDataset({.name = "events"}));
  PutMany("row", 10);
  store_->Do("create", "events", Shadowed("mysql"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  gate.Set(true);
  ASSERT_TRUE(Eventually([&] {
    EXPECT_OK(Get("row000"));
    return gate.Waiting() > 0;
  }));
  // Many more reads than may wait to be compared, none of which waits itself.
  constexpr int kReads = 3000;
  for (int i = 0; i < kReads; ++i) ASSERT_OK(Get("row001"));
  EXPECT_GT(gate.Waiting(), 0);
  EXPECT_TRUE(Eventually([&] { return Shadow()["dropped"] >= kReads - 1100; })) << Shadow();
  gate.Set(false);
  EXPECT_TRUE(Eventually([&] {
    EXPECT_OK(Get("row001"));
    return Shadow()["compared"] > 1;
  }));
  EXPECT_EQ(Shadow()["differences"], 0);
  store_.reset();
}

}  // namespace
}  // namespace kvstore::testing
