#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/fail_point.h"
#include "tests/migration/forward.h"
#include "tests/migration/migration_fixture.h"
#include "tests/support/eventually.h"

namespace kvstore::testing {

/// Which endpoints fail, and what their hosts say of themselves. Of the test, which outlives the endpoints.
struct Faults {
  std::atomic<bool> down{false};      ///< Of MySQL: nothing answers.
  std::atomic<int> restarts{0};       ///< Of MySQL: another boot after each.
  std::atomic<int> broken_enters{0};  ///< So many sweeps to `broken` of MySQL fail, behind their first shard.
  std::atomic<EndpointState> broken{EndpointState::kMoved};
  std::atomic<int> aborted{
      0};  ///< So many times RocksDB says that another worker has taken over, which is not so.
};

/// The endpoint of MySQL, in trouble.
class Troubled : public Forward {
 public:
  Troubled(std::unique_ptr<MigrationEndpoint> wrapped, Faults& faults)
      : Forward(std::move(wrapped)), faults_(faults) {}
  absl::StatusOr<EndpointStatus> Status() override {
    if (faults_.down) return Down();
    return inner->Status();
  }
  absl::StatusOr<std::string> Boot() override {
    if (faults_.down) return Down();
    auto boot = inner->Boot();
    if (boot.ok()) *boot += fmt::format(" restarted {}", faults_.restarts.load());
    return boot;
  }
  absl::Status RaiseEpoch(uint64_t epoch) override {
    return faults_.down ? Down() : inner->RaiseEpoch(epoch);
  }
  absl::Status Enter(uint64_t epoch, EndpointState state, bool capture) override {
    if (faults_.down) return Down();
    if (state == faults_.broken && faults_.broken_enters > 0) {
      --faults_.broken_enters;
      // A sweep that got to some of the shards only.
      if (auto status = inner->Limit("0-5"); !status.ok()) return status;
      if (auto status = inner->Enter(epoch, state, capture); !status.ok()) return status;
      if (auto status = inner->Limit("0-15"); !status.ok()) return status;
      return absl::UnavailableError("shard mod00006 at somewhere: was cut off");
    }
    return inner->Enter(epoch, state, capture);
  }
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override {
    return faults_.down ? Down() : inner->Replace(epoch, units, fresh);
  }
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override {
    if (faults_.down) return Down();
    return inner->ReadDirty(limit);
  }
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    if (faults_.down) return Down();
    return inner->Read(keys, as_of);
  }

 private:
  static absl::Status Down() { return absl::UnavailableError("mysql is down"); }
  Faults& faults_;
};

/// A world whose MySQL side gets into trouble.
class CrossingTest : public ::testing::Test {
 protected:
  CrossingTest() { SharedFleet().Clear(); }
  ~CrossingTest() override { SetFailPointHook(nullptr); }

  World& Open() {
    world_ = nullptr;
    world_ = std::make_unique<World>(
        dir_.path(),
        [this](std::unique_ptr<MigrationEndpoint> endpoint) -> std::unique_ptr<MigrationEndpoint> {
          // The embedded store's partitions are always the same.
          if (endpoint->Extent().value_or("").empty()) return endpoint;
          return std::make_unique<Troubled>(std::move(endpoint), faults_);
        });
    return *world_;
  }
  /// That, with a dataset of ten rows, row000 to row009, whose copy on MySQL is complete.
  World& OpenReady(const Json& options = To("mysql")) {
    World& world = Open();
    EXPECT_OK(world.router().CreateDataset({.name = "events"}));
    PutMany("row", 10);
    world.Do("create", "events", options);
    world.Do("start", "events");
    world.Await("events", "ready");
    return world;
  }
  /// That, with `count` rows, and cut over: MySQL serves.
  World& OpenCrossed(const std::string& prefix, int count) {
    World& world = Open();
    EXPECT_OK(world.router().CreateDataset({.name = "events"}));
    PutMany(prefix, count);
    Cross();
    return world;
  }
  void Put(const std::string& row, const std::string& value = "v") {
    const CellWrite cell{"c", value, std::nullopt};
    ASSERT_OK(world_->router().PutRow("events", row, {&cell, 1}, {})) << row;
  }
  void PutMany(const std::string& prefix, int count) {
    for (int i = 0; i < count; ++i) Put(fmt::format("{}{:03}", prefix, i));
  }
  int Count(const std::string& prefix, int count) {
    int there = 0;
    for (int i = 0; i < count; ++i) {
      const auto row = world_->router().GetRow("events", fmt::format("{}{:03}", prefix, i), {});
      EXPECT_OK(row);
      there += row.ok() && !row->items.empty() ? 1 : 0;
    }
    return there;
  }
  /// From rocksdb to mysql, and cut over.
  void Cross() {
    world_->Do("create", "events", To("mysql"));
    world_->Do("start", "events");
    world_->Await("events", "ready");
    world_->Do("cutover", "events");
    world_->Await("events", "reversible");
  }
  /// Tables of the dataset on the fleet.
  static std::set<std::string> TablesLeft() {
    std::set<std::string> found;
    for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
      const std::string names =
          SharedFleet().OfShard(shard).Run(fmt::format("SELECT table_name FROM information_schema.tables "
                                                       "WHERE table_schema = 'mod{:05}' AND table_name LIKE "
                                                       "'events%'",
                                                       shard));
      if (!names.empty()) found.insert(names);
    }
    return found;
  }
  std::string Field(const char* field) { return world_->Do("status", "events").value(field, ""); }
  /// As a lossy replica would, while nothing is drained: rows, and what the log has of them.
  static void Lose(const std::string& prefix) {
    for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
      // In one transaction: a drain that is still under way sees nothing of it.
      SharedFleet().OfShard(shard).Run(
          fmt::format("START TRANSACTION; DELETE FROM `mod{0:05}`.`events` WHERE row_key LIKE '{1}%'; "
                      "DELETE FROM `mod{0:05}`.`events$dirty` WHERE k1 LIKE '{1}%'; COMMIT",
                      shard, prefix));
    }
  }

  const TempDir dir_;
  Faults faults_;
  std::unique_ptr<World> world_;
};

}  // namespace kvstore::testing
