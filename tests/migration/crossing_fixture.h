#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend_api/forwarding_endpoint.h"
#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "tests/migration/migration_fixture.h"
#include "tests/support/eventually.h"

namespace kvstore::testing {

/// Faults that a test injects into endpoints. Must outlive the endpoints.
struct Faults {
  std::atomic<bool> down{false};  ///< MySQL does not answer.
  std::atomic<int> restarts{0};   ///< How often a MySQL host was restarted: each changes the boot ID.
  /// How many transitions of MySQL to the state `broken` fail, after they have changed some of the shards.
  std::atomic<int> failing_transitions{0};
  std::atomic<EndpointState> broken{EndpointState::kMoved};
  /// The next units that are copied to MySQL arrive late: the copy fails, and they are kept here.
  std::atomic<bool> delays{false};
  std::atomic<uint64_t> late_epoch{0};  ///< The epoch of the late units; 0: there are none.
  std::vector<Unit> late;               ///< Written before late_epoch.
  /// MySQL takes copied units and does not answer, until the call is cut off, which counts as one.
  std::atomic<bool> hangs{false};
  std::atomic<int> cut_off{0};
  /// How often RocksDB reports wrongly that another worker has taken over.
  std::atomic<int> aborted{0};
};

/// The endpoint of MySQL, with faults.
class FaultyEndpoint : public ForwardingEndpoint {
 public:
  FaultyEndpoint(std::unique_ptr<MigrationEndpoint> wrapped, Faults& faults)
      : ForwardingEndpoint(std::move(wrapped)), faults_(faults) {}
  absl::StatusOr<EndpointStatus> Status() override {
    if (faults_.down) return Down();
    return inner->Status();
  }
  absl::StatusOr<std::string> BootId() override {
    if (faults_.down) return Down();
    auto boot = inner->BootId();
    if (boot.ok()) *boot += fmt::format(" restarted {}", faults_.restarts.load());
    return boot;
  }
  absl::Status RaiseEpoch(uint64_t epoch) override {
    return faults_.down ? Down() : inner->RaiseEpoch(epoch);
  }
  absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) override {
    if (faults_.down) return Down();
    if (state == faults_.broken && faults_.failing_transitions > 0) {
      --faults_.failing_transitions;
      // The transition changes only some of the shards.
      if (auto status = inner->Limit("0-5"); !status.ok()) return status;
      if (auto status = inner->TransitionTo(epoch, state, capture); !status.ok()) return status;
      if (auto status = inner->Limit("0-15"); !status.ok()) return status;
      return absl::UnavailableError("shard mod00006 at somewhere: was cut off");
    }
    return inner->TransitionTo(epoch, state, capture);
  }
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override {
    if (faults_.down) return Down();
    if (faults_.delays.exchange(false)) {
      faults_.late.assign(units.begin(), units.end());
      faults_.late_epoch = epoch;
      return absl::UnavailableError("the connection was lost");
    }
    while (faults_.hangs) {
      if (auto status = CheckCall(); !status.ok()) {
        ++faults_.cut_off;
        return status;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return inner->Replace(epoch, units, fresh);
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

/// A store whose MySQL side has faults.
class FaultyMySqlTest : public ::testing::Test {
 protected:
  FaultyMySqlTest() { SharedFleet().Clear(); }
  ~FaultyMySqlTest() override { SetFailPointHook(nullptr); }

  MigratingStore& Open() {
    store_ = nullptr;
    store_ = std::make_unique<MigratingStore>(
        dir_.path(),
        [this](std::unique_ptr<MigrationEndpoint> endpoint) -> std::unique_ptr<MigrationEndpoint> {
          // Only the embedded store's extent is empty; its endpoint has no faults.
          if (endpoint->Extent().value_or("").empty()) return endpoint;
          return std::make_unique<FaultyEndpoint>(std::move(endpoint), faults_);
        });
    return *store_;
  }
  /// Opens a store with a dataset of ten rows, row000 to row009, whose copy on MySQL is complete.
  MigratingStore& OpenReady(const Json& options = To("mysql")) {
    MigratingStore& store = Open();
    EXPECT_OK(store.router().CreateDataset({.name = "events"}));
    PutMany("row", 10);
    store.Do("create", "events", options);
    store.Do("start", "events");
    store.Await("events", "ready");
    return store;
  }
  /// Opens a store with a dataset of `count` rows that was cut over: MySQL serves.
  MigratingStore& OpenCrossed(const std::string& prefix, int count) {
    MigratingStore& store = Open();
    EXPECT_OK(store.router().CreateDataset({.name = "events"}));
    PutMany(prefix, count);
    Cross();
    return store;
  }
  void Put(const std::string& row, const std::string& value = "v") {
    const CellWrite cell{"c", value, std::nullopt};
    ASSERT_OK(store_->router().PutRow("events", row, {&cell, 1}, {})) << row;
  }
  void PutMany(const std::string& prefix, int count) {
    for (int i = 0; i < count; ++i) Put(fmt::format("{}{:03}", prefix, i));
  }
  int Count(const std::string& prefix, int count) {
    int there = 0;
    for (int i = 0; i < count; ++i) {
      const auto row = store_->router().GetRow("events", fmt::format("{}{:03}", prefix, i), {});
      EXPECT_OK(row);
      there += row.ok() && !row->items.empty() ? 1 : 0;
    }
    return there;
  }
  /// Migrates the dataset from rocksdb to mysql, up to after the cutover.
  void Cross() {
    store_->Do("create", "events", To("mysql"));
    store_->Do("start", "events");
    store_->Await("events", "ready");
    store_->Do("cutover", "events");
    store_->Await("events", "reversible");
  }
  /// The names of the dataset's tables that are left on the fleet.
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
  std::string Field(const char* field) { return store_->Do("status", "events").value(field, ""); }
  /// Removes rows and their log entries, as if a replica without them had been promoted. Nothing must be
  /// drained meanwhile.
  static void Lose(const std::string& prefix) {
    for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
      // In one transaction, so that a drain that is still running sees all or nothing of it.
      SharedFleet().OfShard(shard).Run(
          fmt::format("START TRANSACTION; DELETE FROM `mod{0:05}`.`events` WHERE row_key LIKE '{1}%'; "
                      "DELETE FROM `mod{0:05}`.`events$dirty` WHERE k1 LIKE '{1}%'; COMMIT",
                      shard, prefix));
    }
  }

  const TempDir dir_;
  Faults faults_;
  std::unique_ptr<MigratingStore> store_;
};

}  // namespace kvstore::testing
