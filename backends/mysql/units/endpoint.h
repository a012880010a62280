#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend_api/migration_endpoint.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"
#include "backends/mysql/units/fleet_units.h"
#include "backends/mysql/units/units.h"
#include "base/mutex.h"

namespace kvstore::mysql {

/// A dataset of a fleet, as a migration sees it. A partition is a shard; migration_tables.h says what a
/// migration makes on it. Thread-safe.
class MySqlEndpoint : public MigrationEndpoint {
 public:
  /// numbers  this number and the next are TableFamily::number of the endpoint's two families; no other
  ///          family of the process may have them.
  MySqlEndpoint(std::shared_ptr<Fleet> fleet, const DatasetSpec& spec, uint32_t numbers);

  absl::StatusOr<std::string> Extent() override;
  absl::Status Limit(const std::string& extent) override;
  absl::StatusOr<EndpointStatus> Status() override;
  absl::StatusOr<std::string> BootId() override;
  absl::Status RaiseEpoch(uint64_t epoch) override;
  absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) override;
  absl::Status Reassert(uint64_t epoch, EndpointState state, bool capture) override;
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override;
  absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) override;
  absl::StatusOr<DirtyLag> Lag() override;
  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t) override { return units_.Partitions(); }
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    return units_.Read(keys, as_of);
  }
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override {
    return units_.Scan(range, as_of);
  }
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override;
  absl::StatusOr<uint64_t> LastTimestamp() override { return units_.LastTimestamp(); }
  absl::Status RaiseTimestamp(uint64_t epoch, uint64_t timestamp) override;
  absl::StatusOr<LocalIdFloors> NextLocalIds() override { return units_.NextLocalIds(); }
  absl::Status RaiseLocalIds(uint64_t epoch, const LocalIdFloors& next) override;

 private:
  ShardSpace space() const { return kind_space_; }
  /// Returns the shards that the endpoint is limited to (Limit), or else those of the map in force; in order.
  std::vector<uint32_t> Shards() const;
  /// Makes those tables of the dataset, if it is here, that no call has needed yet.
  absl::Status MakeAllTables();
  /// Calls `change` for all shards, on each under its MigrationLock; several shards of a host at once.
  absl::Status Sweep(const std::function<absl::Status(Connection&, uint32_t)>& change);
  /// Runs `work` on the shard's table, which is under its own name or, for now, under the name `away`.
  absl::Status OnTable(uint32_t shard, Repeat repeat, const ReadTable& work);
  /// Returns UNAVAILABLE unless this is the server on which RaiseEpoch was called, not restarted since. One
  /// that was promoted, or has lost its last commits, may have the epoch without what this worker has written
  /// since.
  absl::Status CheckServer(Connection& connection, uint32_t shard);
  /// Whether the shard's table is under the name `away`, as last seen or, if it was not, as it is now.
  bool IsAway(Connection& connection, uint32_t shard);
  /// Within a transaction: locks the shard's epoch and state until its end. Returns ABORTED if the epoch is
  /// another one.
  ///
  /// takes_units  set to whether units may be written in this state.
  absl::Status LockState(Connection& connection, uint32_t shard, uint64_t epoch, bool* takes_units);

  using Numbers = std::vector<uint32_t>;
  /// Returns the shards that the endpoint is limited to, in order; null if it is not limited. The migration's
  /// worker may call Limit again while other threads read figures.
  std::shared_ptr<const Numbers> limit() const {
    const MutexLock lock(limit_mutex_);
    return limit_;
  }

  const std::shared_ptr<Fleet> fleet_;
  const DatasetSpec spec_;
  const UnitKind kind_;
  const ShardSpace kind_space_;
  const Dataset base_;
  const Dataset away_;
  const FleetUnits units_;
  mutable Mutex limit_mutex_;
  std::shared_ptr<const Numbers> limit_ ABSL_GUARDED_BY(limit_mutex_);
  Mutex mutex_;
  std::map<uint32_t, bool> is_away_ ABSL_GUARDED_BY(mutex_);  // by shard, as last seen
  std::map<uint32_t, std::string> servers_
      ABSL_GUARDED_BY(mutex_);  // by shard: Connection::BootId at RaiseEpoch
};

}  // namespace kvstore::mysql
