#include "backends/rocksdb/units/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "backend_api/as_of.h"
#include "backend_api/scan_budget.h"
#include "backends/rocksdb/engine/deleted.h"
#include "backends/rocksdb/engine/status.h"
#include "backends/rocksdb/objects/mapping_store.h"
#include "backends/rocksdb/objects/object_store.h"
#include "backends/rocksdb/rows/cell_key.h"
#include "base/big_endian.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::rocks {
namespace {

/// A page of a scan has about so many units, or bytes.
constexpr size_t kPageUnits = 1000;
constexpr size_t kPageBytes = size_t{1} << 20;
/// The call's deadline is checked after so many cells.
constexpr uint64_t kCellsBetweenChecks = 1024;

/// Decides which cells of a column are visible.
struct Visible {
  uint64_t oldest = 0;
  uint64_t max_versions = 0;

  Visible(const FamilySettings& settings, uint64_t as_of) : max_versions(settings.max_versions) {
    const uint64_t ttl = settings.ttl_ms;
    as_of = NoLater(as_of, WallClockMs());
    if (ttl != 0 && as_of > ttl) oldest = as_of - ttl;
    if (max_versions == 0) max_versions = UINT64_MAX;
  }
};

std::string ToString(const rocksdb::Slice& slice) { return slice.ToString(); }

rocksdb::ReadOptions IteratorOptions(const SharedSnapshot& snapshot) {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.get();
  options.total_order_seek = true;
  options.fill_cache = false;
  options.max_skippable_internal_keys = kMaxDeletedInARow;
  return options;
}

/// An iterator over the cells of one column. It is bounded to them, because it would otherwise pass all
/// tombstones after a deleted column.
class ColumnIterator {
 public:
  ColumnIterator(Engine& engine, const Family& family, const std::string& unit,
                 const SharedSnapshot& snapshot)
      : end_(EndOf(unit)), bound_(end_) {
    rocksdb::ReadOptions options = IteratorOptions(snapshot);
    options.iterate_upper_bound = &bound_;
    it_.reset(engine.db().NewIterator(options, family.handle));
    it_->Seek(unit);
  }
  rocksdb::Iterator& operator*() { return *it_; }
  rocksdb::Iterator* operator->() { return it_.get(); }

 private:
  const std::string end_;
  const rocksdb::Slice bound_;
  std::unique_ptr<rocksdb::Iterator> it_;
};

bool IsOfUnit(std::string_view key, std::string_view unit) {
  return key.size() == unit.size() + kTimestampBytes && key.starts_with(unit);
}

/// Reads the cells of the unit whose first key the iterator stands at, or may have stopped before, and moves
/// past it; there the iterator may have stopped. `unit` has its key. Fails if the call is over, but not if
/// the iterator has failed.
absl::Status ReadColumn(rocksdb::Iterator& it, const Visible& visible, Unit& unit) {
  for (uint64_t cells = 1;; it.Next(), ++cells) {
    while (!it.Valid()) {
      const auto at = StoppedAt(it);
      if (!at || !IsOfUnit(*at, unit.key)) return absl::OkStatus();
      if (auto status = CheckCall(); !status.ok()) return status;
      it.Seek(*at);
    }
    const std::string_view key = it.key().ToStringView();
    if (!IsOfUnit(key, unit.key)) {
      SpendScanBudget(cells);
      return absl::OkStatus();
    }
    if (cells % kCellsBetweenChecks == 0) {
      if (auto status = CheckCall(); !status.ok()) return status;
    }
    const uint64_t timestamp = TimestampOf(key);
    if (timestamp < visible.oldest || unit.cells.size() >= visible.max_versions) continue;
    unit.cells.push_back({timestamp, it.value().ToString()});
  }
}

absl::StatusOr<Unit> ObjectUnit(std::string key, const rocksdb::Slice& stored) {
  auto object = DecodeObject(ReadBigEndian<uint64_t>(key), stored.ToStringView());
  if (!object.ok()) return object.status();
  return Unit{std::move(key), {{object->timestamp, std::move(object->data)}}};
}

Unit MappingUnit(std::string key, const rocksdb::Slice& stored) {
  return {std::move(key), {{0, ToString(stored)}}};
}

class Scan : public UnitScan {
 public:
  Scan(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family, Shape shape, const UnitRange& range,
       uint64_t as_of, SharedSnapshot snapshot, std::function<absl::Status()> check)
      : engine_(std::move(engine)),
        family_(std::move(family)),
        snapshot_(std::move(snapshot)),
        check_(std::move(check)),
        shape_(shape),
        visible_(*family_->settings, as_of),
        from_(range.start),
        end_(range.end) {}

  absl::StatusOr<std::vector<Unit>> Next() override {
    auto page = ReadPage();
    if (auto status = check_(); !status.ok()) return status;
    return page;
  }

 private:
  absl::StatusOr<std::vector<Unit>> ReadPage() {
    std::vector<Unit> page;
    if (done_) return page;
    // Use a new iterator for each page: one that is kept would pin files that are compacted meanwhile.
    const std::unique_ptr<rocksdb::Iterator> it(
        engine_->db().NewIterator(IteratorOptions(snapshot_), family_->handle));
    size_t bytes = 0;
    Seek(*it, from_);
    // `seen` also counts columns without visible cells, which are skipped.
    for (uint64_t seen = 1; page.size() < kPageUnits && bytes < kPageBytes; ++seen) {
      if (!it->Valid() || seen % kCellsBetweenChecks == 0 || IsScanBudgetSpent()) {
        if (auto status = AdvancePastDeleted(*it); !status.ok()) return status;
        if (IsScanBudgetSpent())
          return page.empty() ? absl::StatusOr<std::vector<Unit>>(PausedError(from_)) : page;
        if (!it->Valid()) break;
      }
      auto unit = ReadUnit(*it);
      if (!unit.ok()) return unit.status();
      if (!end_.empty() && unit->key >= end_) {
        done_ = true;
        return page;
      }
      from_ = shape_ == Shape::kRows ? EndOf(unit->key) : unit->key + '\0';
      // A unit without cells does not exist, and an empty page would be the end.
      if (unit->cells.empty()) continue;
      for (const Cell& cell : unit->cells) bytes += cell.value.size();
      bytes += unit->key.size();
      page.push_back(*std::move(unit));
    }
    if (it->Valid() || StoppedAt(*it)) return page;
    if (!it->status().ok()) return ToStatus(it->status(), "scan for a migration");
    done_ = true;
    return page;
  }

  /// Moves an iterator that has stopped among deleted cells on until it is at a unit or at its end, or the
  /// scan has to pause. Keeps from_ up to date.
  absl::Status AdvancePastDeleted(rocksdb::Iterator& it) {
    for (;;) {
      if (auto status = CheckCall(); !status.ok()) return status;
      const auto at = StoppedAt(it);
      // If the iterator has failed, the last unit may be incomplete.
      if (!at) return it.Valid() ? absl::OkStatus() : ToStatus(it.status(), "scan for a migration");
      SpendScanBudget(kMaxDeletedInARow);
      if (std::string unit = UnitAt(*at); unit > from_) from_ = std::move(unit);
      if (IsScanBudgetSpent()) return absl::OkStatus();
      it.Seek(*at);
      if (shape_ == Shape::kMappings) PassOthers(it);
    }
  }

  /// The lowest key that a unit can have whose stored key is this one or a later one.
  std::string UnitAt(const std::string& stored) const {
    switch (shape_) {
      case Shape::kRows:
        return stored.size() > kTimestampBytes ? stored.substr(0, stored.size() - kTimestampBytes) : "";
      case Shape::kObjects:
        return stored;
      case Shape::kMappings:
        break;
    }
    if (RocksMappingStore::IsPair(stored)) return RocksMappingStore::UnitKeyOf(stored);
    if (stored.size() < sizeof(uint64_t)) return "";
    auto from = ReadBigEndian<uint64_t>(stored);
    if (stored > RocksMappingStore::PairPrefix(from)) {
      if (from == UINT64_MAX) return "";
      ++from;
    }
    std::string unit;
    AppendBigEndian(unit, from);
    return unit;
  }

  /// Moves to the first stored key of a unit whose key is `unit` or a later one.
  void Seek(rocksdb::Iterator& it, const std::string& unit) const {
    if (shape_ != Shape::kMappings) {
      it.Seek(unit);
      return;
    }
    SeekMapping(it, unit);
  }

  static void SeekMapping(rocksdb::Iterator& it, const std::string& unit) {
    uint64_t from = 0;
    std::string to;
    if (unit.size() >= sizeof(uint64_t)) {
      from = ReadBigEndian<uint64_t>(unit);
      to = unit.substr(sizeof(uint64_t));
    }
    it.Seek(RocksMappingStore::PairPrefix(from) + to);
    PassOthers(it);
  }
  /// Skips keys of mappings that are not pairs, up to the next pair.
  static void PassOthers(rocksdb::Iterator& it) {
    while (it.Valid() && !RocksMappingStore::IsPair(it.key().ToStringView())) {
      const std::string_view key = it.key().ToStringView();
      const auto from = ReadBigEndian<uint64_t>(key);
      const std::string pairs = RocksMappingStore::PairPrefix(from);
      if (key < pairs) {
        it.Seek(pairs);
      } else if (from == UINT64_MAX) {
        it.SeekToLast();
        it.Next();
      } else {
        it.Seek(RocksMappingStore::PairPrefix(from + 1));
      }
    }
  }

  /// Reads the unit that the iterator is at, and moves past it.
  absl::StatusOr<Unit> ReadUnit(rocksdb::Iterator& it) const {
    const std::string_view key = it.key().ToStringView();
    switch (shape_) {
      case Shape::kRows: {
        if (key.size() <= kTimestampBytes) return absl::DataLossError("a stored key is not that of a cell");
        Unit unit{std::string(key.substr(0, key.size() - kTimestampBytes)), {}};
        if (!IsUnitKey(Shape::kRows, unit.key)) {
          return absl::DataLossError("a stored key is not that of a cell");
        }
        if (auto status = ReadColumn(it, visible_, unit); !status.ok()) return status;
        return unit;
      }
      case Shape::kObjects: {
        if (key.size() != sizeof(uint64_t))
          return absl::DataLossError("a stored key is not that of an object");
        auto unit = ObjectUnit(std::string(key), it.value());
        it.Next();
        return unit;
      }
      case Shape::kMappings:
        break;
    }
    Unit unit = MappingUnit(RocksMappingStore::UnitKeyOf(key), it.value());
    it.Next();
    PassOthers(it);
    return unit;
  }

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Family> family_;
  const SharedSnapshot snapshot_;
  const std::function<absl::Status()> check_;
  const Shape shape_;
  const Visible visible_;
  std::string from_;
  const std::string end_;
  bool done_ = false;
};

absl::Status ReplaceRows(Engine& engine, const Family& family, std::span<const Unit> units, bool fresh,
                         rocksdb::WriteBatch& batch) {
  rocksdb::Status status;
  const auto keep_error = [&](rocksdb::Status one) {
    if (status.ok()) status = std::move(one);
  };
  std::string key;
  for (const Unit& unit : units) {
    if (!fresh) {
      ColumnIterator it(engine, family, unit.key, /*snapshot=*/nullptr);
      for (;; it->Next()) {
        if (auto passed = PassDeleted(*it); !passed.ok()) return passed;
        if (!it->Valid()) break;
        keep_error(batch.Delete(family.handle, it->key()));
      }
      if (!it->status().ok()) return ToStatus(it->status(), "read what is replaced");
    }
    for (const Cell& cell : unit.cells) {
      key = unit.key;
      AppendTimestamp(key, cell.timestamp);
      keep_error(batch.Put(family.handle, key, cell.value));
    }
  }
  return ToStatus(status, "replace cells");
}

absl::Status ReplaceObjects(const Family& family, std::span<const Unit> units, rocksdb::WriteBatch& batch) {
  rocksdb::Status status;
  for (const Unit& unit : units) {
    auto one = unit.cells.empty() ? batch.Delete(family.handle, unit.key)
                                  : batch.Put(family.handle, unit.key,
                                              EncodeObject(unit.cells[0].value, unit.cells[0].timestamp));
    if (status.ok()) status = std::move(one);
  }
  return ToStatus(status, "replace objects");
}

absl::Status ReplaceMappings(Engine& engine, const Family& family, std::span<const Unit> units,
                             rocksdb::WriteBatch& batch) {
  std::map<uint64_t, int64_t> changes;  // of the counts, by `from`
  rocksdb::Status status;
  const auto keep_error = [&](rocksdb::Status one) {
    if (status.ok()) status = std::move(one);
  };
  for (const Unit& unit : units) {
    const auto from = ReadBigEndian<uint64_t>(unit.key);
    const auto to = ReadBigEndian<uint64_t>(std::string_view(unit.key).substr(sizeof(uint64_t)));
    const std::string pair = RocksMappingStore::PairPrefix(from) + unit.key.substr(sizeof(uint64_t));
    std::string stored;
    const auto read = engine.db().Get({}, family.handle, pair, &stored);
    if (!read.ok() && !read.IsNotFound()) return ToStatus(read, "read a mapping");
    const bool before = read.ok();
    if (before && stored.size() != sizeof(uint64_t)) {
      return absl::DataLossError("a stored mapping does not decode");
    }
    if (before) {
      keep_error(batch.Delete(family.handle,
                              RocksMappingStore::OrderKey(from, ReadBigEndian<uint64_t>(stored), to)));
    }
    if (unit.cells.empty()) {
      if (before) keep_error(batch.Delete(family.handle, pair));
    } else {
      const std::string& sequence = unit.cells[0].value;
      if (sequence.size() != sizeof(uint64_t))
        return absl::DataLossError("a mapping's sequence does not decode");
      keep_error(batch.Put(family.handle, pair, sequence));
      keep_error(batch.Put(family.handle,
                           RocksMappingStore::OrderKey(from, ReadBigEndian<uint64_t>(sequence), to), ""));
    }
    changes[from] += (unit.cells.empty() ? 0 : 1) - (before ? 1 : 0);
  }
  for (const auto& [from, change] : changes) {
    if (change == 0) continue;
    std::string stored;
    const std::string key = RocksMappingStore::CountKey(from);
    const auto read = engine.db().Get({}, family.handle, key, &stored);
    if (!read.ok() && !read.IsNotFound()) return ToStatus(read, "read a mapping");
    const int64_t count = (read.ok() ? static_cast<int64_t>(ReadBigEndian<uint64_t>(stored)) : 0) + change;
    if (count <= 0) {
      keep_error(batch.Delete(family.handle, key));
    } else {
      std::string value;
      AppendBigEndian(value, static_cast<uint64_t>(count));
      keep_error(batch.Put(family.handle, key, value));
    }
  }
  return ToStatus(status, "replace mappings");
}

}  // namespace

absl::StatusOr<std::shared_ptr<Family>> FindDataset(const Engine& engine, const DatasetSpec& spec) {
  auto family = engine.FindFamily(spec.name);
  if (family && family->settings->incarnation == spec.incarnation) return family;
  return absl::FailedPreconditionError(fmt::format("dataset: '{}' is not in this backend", spec.name));
}

SharedSnapshot TakeSnapshot(std::shared_ptr<Engine> engine) {
  const rocksdb::Snapshot* const snapshot = engine->db().GetSnapshot();
  return {snapshot, [owner = std::move(engine)](const rocksdb::Snapshot* taken) {
            owner->db().ReleaseSnapshot(taken);
          }};
}

absl::StatusOr<std::vector<Unit>> ReadUnits(Engine& engine, const Family& family, Shape shape,
                                            std::span<const std::string> keys, uint64_t as_of,
                                            const SharedSnapshot& snapshot) {
  std::vector<Unit> units;
  units.reserve(keys.size());
  if (shape == Shape::kRows) {
    const Visible visible(*family.settings, as_of);
    for (const std::string& key : keys) {
      Unit& unit = units.emplace_back(Unit{key, {}});
      ColumnIterator it(engine, family, key, snapshot);
      if (auto status = ReadColumn(*it, visible, unit); !status.ok()) return status;
      if (auto status = CheckCall(); !status.ok()) return status;
      if (!it->status().ok()) return ToStatus(it->status(), "read for a migration");
    }
    return units;
  }
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.get();
  for (const std::string& key : keys) {
    const std::string stored_key =
        shape == Shape::kObjects
            ? key
            : RocksMappingStore::PairPrefix(ReadBigEndian<uint64_t>(key)) + key.substr(sizeof(uint64_t));
    std::string stored;
    const auto read = engine.db().Get(options, family.handle, stored_key, &stored);
    if (read.IsNotFound()) {
      units.push_back({key, {}});
      continue;
    }
    if (!read.ok()) return ToStatus(read, "read for a migration");
    absl::StatusOr<Unit> unit = shape == Shape::kObjects ? ObjectUnit(key, stored) : MappingUnit(key, stored);
    if (!unit.ok()) return unit.status();
    units.push_back(*std::move(unit));
  }
  return units;
}

std::unique_ptr<UnitScan> ScanUnits(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family,
                                    Shape shape, const UnitRange& range, uint64_t as_of,
                                    SharedSnapshot snapshot, std::function<absl::Status()> check) {
  return std::make_unique<Scan>(std::move(engine), std::move(family), shape, range, as_of,
                                std::move(snapshot), std::move(check));
}

absl::Status ReplaceUnits(Engine& engine, const Family& family, Shape shape, std::span<const Unit> units,
                          bool fresh, rocksdb::WriteBatch& batch) {
  switch (shape) {
    case Shape::kRows:
      return ReplaceRows(engine, family, units, fresh, batch);
    case Shape::kObjects:
      return ReplaceObjects(family, units, batch);
    case Shape::kMappings:
      return ReplaceMappings(engine, family, units, batch);
  }
  return absl::OkStatus();
}

}  // namespace kvstore::rocks
