#include "backends/rocksdb/units/unit_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backend_api/unit_key.h"
#include "backends/rocksdb/objects/local_ids.h"
#include "backends/rocksdb/rows/partitions.h"
#include "backends/rocksdb/units/units.h"
#include "idgen/object_id.h"

namespace kvstore::rocks {
namespace {

/// Returns about `wanted` ranges that together contain all units.
absl::StatusOr<std::vector<UnitRange>> SplitUnits(Engine& engine, const Family& family, Shape shape,
                                                  size_t wanted) {
  std::vector<UnitRange> ranges(1);
  if (shape == Shape::kRows) {
    const auto partitions = PartitionRows(engine, family, wanted);
    if (!partitions.ok()) return partitions.status();
    for (const Partition& partition : *partitions) {
      if (partition.range.start.empty()) continue;
      std::string start;
      AppendEncoded(start, partition.range.start);
      ranges.back().end = start;
      ranges.push_back({.start = std::move(start)});
    }
    if (ranges.size() * 2 > wanted) return ranges;
    // There are few files or none, so interpolate between the first and the last key.
    auto starts = SplitRows(engine, family, wanted);
    if (!starts.ok()) return starts.status();
    ranges.assign(1, {});
    for (std::string& split : *starts) {
      ranges.back().end = split;
      ranges.push_back({.start = std::move(split)});
    }
    return ranges;
  }
  // Split by shards: the shard is the high part of the ID that a unit's key begins with.
  std::map<uint32_t, uint64_t> used;
  if (shape == Shape::kObjects) {
    auto stored = LocalIds::Stored(engine, family.settings->incarnation);
    if (!stored.ok()) return stored.status();
    used = *std::move(stored);
  }
  const size_t step = std::max<size_t>(1, (used.size() + wanted - 1) / std::max<size_t>(wanted, 1));
  size_t i = 0;
  for (const auto& [shard, next] : used) {
    if (i++ % step != 0 || i == 1) continue;
    std::string start = ObjectUnitKey(ObjectId::ValueOf(shard, 0, 0));
    ranges.back().end = start;
    ranges.push_back({.start = std::move(start)});
  }
  return ranges;
}

absl::Status CheckRange(const UnitRange& range) {
  if (range.shard.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("an embedded store has no shards");
}

/// A dataset as it was when this was made. Thread-safe.
class RocksUnitSnapshot : public UnitSnapshot {
 public:
  RocksUnitSnapshot(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family, Shape shape,
                    std::chrono::seconds max_age)
      : engine_(std::move(engine)),
        family_(std::move(family)),
        shape_(shape),
        max_age_(max_age),
        expires_(SnapshotEnd(max_age)),
        snapshot_(TakeSnapshot(engine_)) {}

  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) override {
    if (auto status = Check(); !status.ok()) return status;
    return SplitUnits(*engine_, *family_, shape_, wanted);
  }
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    auto units = ReadUnits(*engine_, *family_, shape_, keys, as_of, snapshot_);
    if (auto status = Check(); !status.ok()) return status;
    return units;
  }
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override {
    if (auto status = CheckRange(range); !status.ok()) return status;
    return ScanUnits(engine_, family_, shape_, range, as_of, snapshot_, [this] { return Check(); });
  }

 private:
  /// OK until it expires.
  absl::Status Check() const {
    if (std::chrono::steady_clock::now() >= expires_) {
      return SnapshotExpiredError(fmt::format("its time of {} s is over", max_age_.count()));
    }
    // RocksDB still has the data of a dropped family, but nobody should rely on it.
    if (engine_->FindFamily(family_->settings->name) != family_) {
      return SnapshotExpiredError(fmt::format("dataset '{}' was dropped", family_->settings->name));
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Family> family_;
  const Shape shape_;
  const std::chrono::seconds max_age_;
  const std::chrono::steady_clock::time_point expires_;
  const SharedSnapshot snapshot_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Family>> RocksUnitReader::Find() const {
  auto family = FindDataset(*engine_, spec_);
  if (!family.ok()) return family;
  if (auto status = Check(**family); !status.ok()) return status;
  return family;
}

absl::Status RocksUnitReader::Check(const Family& family) const {
  return callers_ == Callers::kClients ? family.gate.CheckRead() : absl::OkStatus();
}

absl::StatusOr<std::vector<UnitRange>> RocksUnitReader::Partitions(size_t wanted) {
  const auto family = Find();
  if (!family.ok()) return family.status();
  return SplitUnits(*engine_, **family, spec_.shape, wanted);
}

absl::StatusOr<std::vector<Unit>> RocksUnitReader::Read(std::span<const std::string> keys, uint64_t as_of) {
  const auto family = Find();
  if (!family.ok()) return family.status();
  auto units = ReadUnits(*engine_, **family, spec_.shape, keys, as_of, nullptr);
  // The dataset may have moved meanwhile, and what was read be older than what its new backend has.
  if (auto status = Check(**family); !status.ok()) return status;
  return units;
}

absl::StatusOr<std::unique_ptr<UnitScan>> RocksUnitReader::Scan(const UnitRange& range, uint64_t as_of) {
  const auto family = Find();
  if (!family.ok()) return family.status();
  if (auto status = CheckRange(range); !status.ok()) return status;
  return ScanUnits(engine_, *family, spec_.shape, range, as_of, nullptr,
                   [this, held = *family] { return Check(*held); });
}

absl::StatusOr<std::unique_ptr<UnitSnapshot>> RocksUnitReader::Snapshot(std::chrono::seconds max_age) {
  const auto family = Find();
  if (!family.ok()) return family.status();
  auto snapshot = std::make_unique<RocksUnitSnapshot>(engine_, *family, spec_.shape, max_age);
  // Taken after the dataset had moved, it would lack the last writes.
  if (auto status = Check(**family); !status.ok()) return status;
  return snapshot;
}

absl::StatusOr<uint64_t> RocksUnitReader::LastTimestamp() {
  return spec_.shape == Shape::kRows ? engine_->timestamps().Latest() : 0;
}

absl::StatusOr<LocalIdFloors> RocksUnitReader::NextLocalIds() {
  if (spec_.shape != Shape::kObjects) return LocalIdFloors();
  return LocalIds::Floors(*engine_, spec_.incarnation);
}

}  // namespace kvstore::rocks
