#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/unit_reader.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"
#include "backends/mysql/units/units.h"

namespace kvstore::mysql {

/// Reads a dataset's table on one shard. May be called again after a failure, and throws sql::SQLException.
using ReadTable = std::function<absl::Status(Connection&, const Table&)>;

/// A way to the tables of a dataset. Both functions may be called by several threads.
struct ShardAccess {
  /// Returns the shards to be read, in order.
  std::function<std::vector<uint32_t>()> shards;
  /// Runs `work` on the shard's table.
  std::function<absl::Status(uint32_t shard, const ReadTable& work)> read;
};

/// Reads the units of a dataset of a fleet. Endpoint, reader and snapshot have this in common, and differ in
/// how they reach the tables. Thread-safe.
class FleetUnits {
 public:
  /// dataset  must outlive this.
  FleetUnits(std::shared_ptr<Fleet> fleet, const UnitKind& kind, const Dataset& dataset, ShardAccess access)
      : fleet_(std::move(fleet)), kind_(kind), dataset_(dataset), access_(std::move(access)) {}

  // As UnitReader. Scans must not outlive this.

  std::vector<UnitRange> Partitions() const;
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) const;
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) const;
  absl::StatusOr<uint64_t> LastTimestamp() const;
  absl::StatusOr<LocalIdFloors> NextLocalIds() const;

  /// Returns the places of the units of each shard. `key` returns the key at a place.
  absl::StatusOr<std::map<uint32_t, std::vector<size_t>>> ByShard(
      size_t count, const std::function<std::string_view(size_t)>& key) const;
  /// Runs `work` on the masters of all shards, hosts in parallel. Returns the first failure.
  absl::Status OnAll(const std::function<absl::Status(Connection&, uint32_t)>& work) const;

 private:
  ShardSpace space() const { return dataset_.family.space; }

  const std::shared_ptr<Fleet> fleet_;
  const UnitKind kind_;
  const Dataset& dataset_;
  const ShardAccess access_;
};

}  // namespace kvstore::mysql
