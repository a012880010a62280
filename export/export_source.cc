#include "export/export_source.h"

#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "backend_api/unit_key.h"
#include "base/big_endian.h"
#include "base/clock.h"
#include "kvstore_api/limits.h"

namespace kvstore::exports {
namespace {

/// An export that takes longer fails; it must not hold the resources of hosts for ever if it hangs.
constexpr std::chrono::hours kMaxAge{24};

// ---- snapshots ----

/// The key at which the row begins that a key is in: a part must not begin inside a row.
std::string RowStart(const std::string& key) { return key.substr(0, EncodedSize(key).value_or(key.size())); }

class SnapshotSource : public ExportSource {
 public:
  SnapshotSource(std::unique_ptr<UnitSnapshot> snapshot, std::vector<UnitRange> ranges, uint64_t as_of_ms)
      : snapshot_(std::move(snapshot)), ranges_(std::move(ranges)), as_of_ms_(as_of_ms) {}

  uint64_t as_of_ms() const override { return as_of_ms_; }
  bool is_snapshot() const override { return true; }
  size_t parts() const override { return ranges_.size(); }
  absl::StatusOr<std::unique_ptr<UnitScan>> Open(size_t part) override {
    return snapshot_->Scan(ranges_[part], as_of_ms_);
  }

 private:
  const std::unique_ptr<UnitSnapshot> snapshot_;
  const std::vector<UnitRange> ranges_;
  const uint64_t as_of_ms_;
};

// ---- scans of clients ----

class RowUnits : public UnitScan {
 public:
  explicit RowUnits(std::unique_ptr<RowCursor> cursor) : cursor_(std::move(cursor)) {}

  absl::StatusOr<std::vector<Unit>> Next() override {
    std::vector<Unit> units;
    const auto more = cursor_->Next(row_);
    if (!more.ok()) return more.status();
    if (!*more) return units;
    for (Item& item : row_.items) {
      units.push_back({RowUnitKey(row_.key, item.column), std::move(item.cells)});
    }
    return units;
  }

 private:
  const std::unique_ptr<RowCursor> cursor_;
  ScannedRow row_;
};

/// Reads pages of a scan, each with the marker of the one before, up to one that has units.
class PagedUnits : public UnitScan {
 public:
  absl::StatusOr<std::vector<Unit>> Next() override {
    std::vector<Unit> units;
    while (units.empty() && (!begun_ || !marker_.empty())) {
      begun_ = true;
      auto marker = ReadPage(marker_, units);
      if (!marker.ok()) return marker.status();
      marker_ = *std::move(marker);
    }
    return units;
  }

 protected:
  /// Reads the page after a marker, which is empty for the first one, and returns the marker of the next one.
  virtual absl::StatusOr<std::string> ReadPage(const std::string& marker, std::vector<Unit>& units) = 0;

 private:
  std::string marker_;
  bool begun_ = false;
};

class ObjectUnits : public PagedUnits {
 public:
  ObjectUnits(KVStore& store, std::string dataset, const IdRange& range)
      : store_(store), dataset_(std::move(dataset)), range_(range) {}

 protected:
  absl::StatusOr<std::string> ReadPage(const std::string& marker, std::vector<Unit>& units) override {
    auto page = store_.ScanObjects(dataset_, range_,
                                   {.include_inactive = true, .limit = kMaxListEntries, .marker = marker});
    if (!page.ok()) return page.status();
    for (Object& object : page->objects) {
      units.push_back({ObjectUnitKey(object.id), {{object.timestamp, std::move(object.data)}}});
    }
    return std::move(page->marker);
  }

 private:
  KVStore& store_;
  const std::string dataset_;
  const IdRange range_;
};

class MappingUnits : public PagedUnits {
 public:
  MappingUnits(KVStore& store, std::string dataset, const IdRange& range)
      : store_(store), dataset_(std::move(dataset)), range_(range) {}

 protected:
  absl::StatusOr<std::string> ReadPage(const std::string& marker, std::vector<Unit>& units) override {
    auto page = store_.ScanMappings(dataset_, range_, {.limit = kMaxListEntries, .marker = marker});
    if (!page.ok()) return page.status();
    for (const ScannedMapping& entry : page->entries) {
      std::string sequence;
      AppendBigEndian(sequence, entry.sequence);
      units.push_back({MappingUnitKey(entry.from, entry.to), {{0, std::move(sequence)}}});
    }
    return std::move(page->marker);
  }

 private:
  KVStore& store_;
  const std::string dataset_;
  const IdRange range_;
};

class ScanSource : public ExportSource {
 public:
  ScanSource(KVStore& store, DatasetSpec spec, const TableOptions& options, std::vector<Partition> partitions)
      : store_(store), spec_(std::move(spec)), partitions_(std::move(partitions)) {
    // However many versions are asked for, no more than max_versions are visible.
    row_options_.versions = std::numeric_limits<uint32_t>::max();
    if (options.columns.empty() || spec_.shape != Shape::kRows) return;
    row_options_.versions = 1;
    row_options_.columns.emplace();
    for (const TableColumn& column : options.columns) row_options_.columns->push_back(column.name);
  }

  uint64_t as_of_ms() const override { return as_of_ms_; }
  bool is_snapshot() const override { return false; }
  size_t parts() const override { return partitions_.size(); }
  absl::StatusOr<std::unique_ptr<UnitScan>> Open(size_t part) override {
    const Partition& partition = partitions_[part];
    switch (spec_.shape) {
      case Shape::kRows: {
        auto cursor = store_.ScanRows(spec_.name, partition.range, row_options_);
        if (!cursor.ok()) return cursor.status();
        return std::make_unique<RowUnits>(*std::move(cursor));
      }
      case Shape::kObjects:
        return std::make_unique<ObjectUnits>(store_, spec_.name, partition.ids);
      case Shape::kMappings:
        break;
    }
    return std::make_unique<MappingUnits>(store_, spec_.name, partition.ids);
  }

 private:
  KVStore& store_;
  const DatasetSpec spec_;
  const std::vector<Partition> partitions_;
  const uint64_t as_of_ms_ = WallClockMs();
  ScanOptions row_options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ExportSource>> OpenSnapshot(UnitReader& reader, const DatasetSpec& spec,
                                                           std::optional<uint64_t> as_of_ms, size_t wanted) {
  auto snapshot = reader.Snapshot(kMaxAge);
  if (!snapshot.ok()) return snapshot.status();
  const uint64_t now = WallClockMs();
  auto ranges = (*snapshot)->Partitions(wanted);
  if (!ranges.ok()) return ranges.status();
  if (spec.shape == Shape::kRows) {
    for (UnitRange& range : *ranges) {
      range.start = RowStart(range.start);
      range.end = RowStart(range.end);
    }
  }
  return std::make_unique<SnapshotSource>(*std::move(snapshot), *std::move(ranges), as_of_ms.value_or(now));
}

absl::StatusOr<std::unique_ptr<ExportSource>> OpenScans(KVStore& store, const DatasetSpec& spec,
                                                        const TableOptions& options, size_t wanted) {
  auto partitions = store.ListPartitions(spec.name, wanted);
  if (!partitions.ok()) return partitions.status();
  return std::make_unique<ScanSource>(store, spec, options, *std::move(partitions));
}

}  // namespace kvstore::exports
