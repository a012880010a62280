#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend_api/unit_reader.h"
#include "backends/mysql/units/fleet_units.h"

namespace kvstore::mysql {

/// Reads a dataset of a fleet as units, while it serves clients here. Thread-safe.
class MySqlUnitReader : public UnitReader {
 public:
  MySqlUnitReader(std::shared_ptr<Fleet> fleet, const DatasetSpec& spec,
                  std::shared_ptr<const Dataset> dataset);

  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t) override { return units_.Partitions(); }
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    return units_.Read(keys, as_of);
  }
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override {
    return units_.Scan(range, as_of);
  }
  absl::StatusOr<std::unique_ptr<UnitSnapshot>> Snapshot(std::chrono::seconds max_age) override;
  absl::StatusOr<uint64_t> LastTimestamp() override { return units_.LastTimestamp(); }
  absl::StatusOr<LocalIdFloors> NextLocalIds() override { return units_.NextLocalIds(); }

 private:
  absl::Status ReadShard(uint32_t shard, const ReadTable& work) const;

  const std::shared_ptr<Fleet> fleet_;
  const DatasetSpec spec_;
  const std::shared_ptr<const Dataset> dataset_;
  const FleetUnits units_;
};

}  // namespace kvstore::mysql
