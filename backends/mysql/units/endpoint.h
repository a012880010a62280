#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/mysql/dataset.h"
#include "backends/mysql/fleet.h"
#include "backends/mysql/units.h"
#include "kvstore_api/migration_endpoint.h"

namespace kvstore::mysql {

/// A dataset of a fleet, as a migration sees it: a partition is a shard. What is made there: move_schema.h.
/// Thread-safe.
class MySqlEndpoint : public MigrationEndpoint {
 public:
  /// numbers  of two table families that nobody else has (TableFamily::number): this one and the next.
  MySqlEndpoint(std::shared_ptr<Fleet> fleet, const DatasetSpec& spec, uint32_t numbers);

  absl::StatusOr<std::string> Extent() override;
  absl::Status Limit(const std::string& extent) override;
  absl::StatusOr<EndpointStatus> Status() override;
  absl::StatusOr<std::string> Boot() override;
  absl::Status RaiseEpoch(uint64_t epoch) override;
  absl::Status Enter(uint64_t epoch, EndpointState state, bool capture) override;
  absl::Status Reassert(uint64_t epoch, EndpointState state, bool capture) override;
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override;
  absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) override;
  absl::StatusOr<DirtyLag> Lag() override;
  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) override;
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override;
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override;
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override;
  absl::StatusOr<uint64_t> LastTimestamp() override;
  absl::Status RaiseTimestamp(uint64_t epoch, uint64_t timestamp) override;
  absl::StatusOr<std::map<uint32_t, uint64_t>> NextLocalIds() override;
  absl::Status RaiseLocalIds(uint64_t epoch, const std::map<uint32_t, uint64_t>& next) override;

 private:
  friend class MySqlUnitScan;

  Space space() const { return kind_space_; }
  /// Those that it is limited to; else those of the map in force. In order.
  std::vector<uint32_t> Shards() const;
  /// Calls `change` for all shards, under the lock of each.
  absl::Status Sweep(const std::function<absl::Status(Connection&, uint32_t)>& change);
  /// Runs `work` on all shards, hosts in parallel; the first failure.
  absl::Status OnAll(Repeat repeat, const std::function<absl::Status(Connection&, uint32_t)>& work);
  /// Runs work on the shard's table, under whichever name it has.
  absl::Status OnTable(uint32_t shard, Repeat repeat,
                       const std::function<absl::Status(Connection&, const Table&)>& work);
  /// UNAVAILABLE unless this is the server on which the epoch was raised, since its last start: one that was
  /// promoted or has lost its memory may have that epoch and not what this worker knows of it.
  absl::Status CheckServer(Connection& connection, uint32_t shard);
  /// Whether the shard's table has its other name now.
  bool IsAway(Connection& connection, uint32_t shard);
  /// The units of each shard, by their places.
  absl::StatusOr<std::map<uint32_t, std::vector<size_t>>> ByShard(
      size_t count, const std::function<std::string_view(size_t)>& key) const;
  /// Hosts in parallel.
  absl::Status ForShards(const std::map<uint32_t, std::vector<size_t>>& by_shard,
                         const std::function<absl::Status(uint32_t, std::span<const size_t>)>& work);
  /// In a transaction: keeps the shard's epoch and state as they are until its end. ABORTED if the epoch is
  /// not this one.
  absl::Status HoldState(Connection& connection, uint32_t shard, uint64_t epoch, bool* takes_units);

  using Numbers = std::vector<uint32_t>;
  /// The shards that it is limited to, in order; null: none. A migration's worker limits it anew, beside
  /// those who ask it for figures.
  std::shared_ptr<const Numbers> limit() const {
    const std::lock_guard lock(limit_mutex_);
    return limit_;
  }

  const std::shared_ptr<Fleet> fleet_;
  const DatasetSpec spec_;
  const UnitKind kind_;
  const Space kind_space_;
  const Dataset base_;
  const Dataset away_;
  mutable std::mutex limit_mutex_;
  std::shared_ptr<const Numbers> limit_;  // guarded by limit_mutex_
  std::mutex mutex_;
  std::map<uint32_t, bool> is_away_;         // by shard, as last seen; guarded by mutex_
  std::map<uint32_t, std::string> servers_;  // by shard: Connection::Boot at RaiseEpoch; guarded by mutex_
};

}  // namespace kvstore::mysql
