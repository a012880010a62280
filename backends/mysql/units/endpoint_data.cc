#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "backend_api/unit_key.h"
#include "backends/mysql/driver/server_lock.h"
#include "backends/mysql/rows/row_writer.h"
#include "backends/mysql/units/endpoint.h"
#include "backends/mysql/units/lanes.h"
#include "backends/mysql/units/migration_tables.h"
#include "backends/mysql/units/unit_scan.h"
#include "base/mutex.h"
#include "idgen/object_id.h"

/// What a migration reads and writes on the shards: dirty logs, units, clocks and counters. endpoint.cc has
/// the shards and their states.
namespace kvstore::mysql {
namespace {

/// Entries of a shard's dirty log are counted up to this number.
constexpr uint64_t kMaxCounted = 100'000;

}  // namespace

// ---- the dirty log ----

absl::StatusOr<std::vector<DirtyEntry>> MySqlEndpoint::ReadDirty(size_t limit) {
  std::vector<DirtyEntry> all;
  Mutex mutex;  // guards all
  absl::Status status = OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    if (auto same = CheckServer(connection, shard); !same.ok()) return same;
    auto entries = mysql::ReadDirty(connection, base_.TableOn(shard), kind_, limit);
    const MutexLock lock(mutex);
    all.insert(all.end(), std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return all;
}

absl::Status MySqlEndpoint::RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) {
  std::map<uint32_t, std::vector<size_t>> by_shard;
  for (size_t i = 0; i < entries.size(); ++i) by_shard[entries[i].log].push_back(i);
  return ForShards(by_shard, [&](uint32_t shard, std::span<const size_t> places) {
    std::vector<uint64_t> ids;
    for (const size_t place : places) ids.push_back(entries[place].id);
    return fleet_->Run(space(), shard, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
      Transaction transaction(connection, Transaction::Kind::kWrite);
      bool unused = false;
      if (auto status = LockState(connection, shard, epoch, &unused); !status.ok()) return status;
      mysql::RemoveDirty(connection, base_.TableOn(shard), ids);
      transaction.Commit();
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<DirtyLag> MySqlEndpoint::Lag() {
  DirtyLag all;
  Mutex mutex;  // guards all
  absl::Status status = OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    Rows rows = connection.Prepare(Sql::kDirtyLag, base_.TableOn(shard)).Bind(kMaxCounted).Query();
    rows.Next();
    const MutexLock lock(mutex);
    all.entries += rows.Uint(1);
    all.oldest_ms = std::max(all.oldest_ms, rows.Uint(2));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return all;
}

// ---- units ----

absl::StatusOr<std::vector<UnitRange>> MySqlEndpoint::Partitions(size_t) {
  std::vector<UnitRange> ranges;
  for (const uint32_t shard : InTurns(fleet_->map(space()), Shards())) {
    ranges.push_back({.shard = DatabaseName(space(), shard)});
  }
  return ranges;
}

absl::StatusOr<std::vector<Unit>> MySqlEndpoint::Read(std::span<const std::string> keys, uint64_t as_of) {
  const auto by_shard = ByShard(keys.size(), [&](size_t i) { return std::string_view(keys[i]); });
  if (!by_shard.ok()) return by_shard.status();
  std::vector<Unit> units(keys.size());
  absl::Status status = ForShards(*by_shard, [&](uint32_t shard, std::span<const size_t> places) {
    return OnTable(shard, Repeat::kAlways, [&](Connection& connection, const Table& table) {
      ReadUnits(connection, table, kind_, Visible(base_, connection, as_of), keys, places, units);
      return absl::OkStatus();
    });
  });
  if (!status.ok()) return status;
  return units;
}

absl::StatusOr<std::unique_ptr<UnitScan>> MySqlEndpoint::Scan(const UnitRange& range, uint64_t as_of) {
  std::vector<uint32_t> shards = Shards();
  if (kind_.shape == Shape::kRows && EncodedSize(range.start) == range.start.size() &&
      range.end == EndOf(range.start)) {
    // The range is one row, which lies on one shard.
    const auto shard = ShardOfUnit(kind_, range.start, fleet_->mod_shards());
    if (!shard.ok()) return shard.status();
    shards = {*shard};
  }
  if (!range.shard.empty()) {
    std::erase_if(shards, [&](uint32_t shard) { return DatabaseName(space(), shard) != range.shard; });
    if (shards.empty()) {
      return absl::InvalidArgumentError(fmt::format("partition: there is no shard '{}'", range.shard));
    }
  }
  ShardReader reader{
      .list = [this, as_of](uint32_t shard, std::string_view from,
                            std::string_view end) -> absl::StatusOr<UnitList> {
        UnitList list;
        absl::Status status =
            OnTable(shard, Repeat::kAlways, [&](Connection& connection, const Table& table) -> absl::Status {
              list = ListUnits(connection, table, kind_, Visible(base_, connection, as_of), from, end);
              return absl::OkStatus();
            });
        if (!status.ok()) return status;
        return list;
      },
      .for_each = [this](std::span<const uint32_t> some,
                         const std::function<void(size_t)>& work) { fleet_->ForEach(space(), some, work); }};
  return std::make_unique<MySqlUnitScan>(std::move(reader), shards, range, spec_.shape == Shape::kRows);
}

absl::Status MySqlEndpoint::Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) {
  const auto by_shard = ByShard(units.size(), [&](size_t i) { return std::string_view(units[i].key); });
  if (!by_shard.ok()) return by_shard.status();
  const auto limited = limit();
  return ForShards(*by_shard, [&](uint32_t shard, std::span<const size_t> places) {
    if (fleet_->map(space()).Find(shard) == nullptr) {
      return absl::Status(absl::InvalidArgumentError(fmt::format(
          "shard {} is not open: open it before the dataset migrates here", DatabaseName(space(), shard))));
    }
    if (limited && !std::binary_search(limited->begin(), limited->end(), shard)) {
      return absl::Status(absl::UnavailableError(fmt::format(
          "shard {} was opened after the migration of '{}' had begun: its worker takes it in soon",
          DatabaseName(space(), shard), spec_.name)));
    }
    return fleet_->Run(space(), shard, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
      Transaction transaction(connection, Transaction::Kind::kWrite);
      bool takes_units = false;
      if (auto status = LockState(connection, shard, epoch, &takes_units); !status.ok()) return status;
      if (!takes_units) {
        return absl::FailedPreconditionError(fmt::format(
            "dataset: '{}' is neither importing nor moved here, so that a migration must not write to it",
            spec_.name));
      }
      WriteUnits(connection, away_.TableOn(shard), kind_, units, places, fresh);
      transaction.Commit();
      return absl::OkStatus();
    });
  });
}

// ---- clocks and counters ----

absl::StatusOr<uint64_t> MySqlEndpoint::LastTimestamp() {
  if (kind_.shape != Shape::kRows) return 0;
  uint64_t last = 0;
  Mutex mutex;  // guards last
  absl::Status status = OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    Rows rows = connection.Prepare(Sql::kLastOfClock, base_.TableOn(shard)).Query();
    rows.Next();
    const MutexLock lock(mutex);
    last = std::max(last, rows.Uint(1));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return last;
}

absl::Status MySqlEndpoint::RaiseTimestamp(uint64_t, uint64_t timestamp) {
  if (kind_.shape != Shape::kRows) return absl::OkStatus();
  return OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    // The clock is raised even if the server's time is past `timestamp`: the time of a slave that is promoted
    // later need not be.
    std::string values;
    for (uint32_t slot = 0; slot < RowWriter::kClockSlots; ++slot) {
      values += fmt::format("{}({}, {})", slot == 0 ? "" : ", ", slot, timestamp);
    }
    connection.Run(
        fmt::format("INSERT INTO {}.{} (slot, last) VALUES {} ON DUPLICATE KEY UPDATE last = GREATEST(last, "
                    "VALUES(last))",
                    Quote(DatabaseName(space(), shard)), Quote(kClockTable), values));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::map<uint32_t, uint64_t>> MySqlEndpoint::NextLocalIds() {
  std::map<uint32_t, uint64_t> next;
  if (kind_.shape != Shape::kObjects) return next;
  Mutex mutex;  // guards next
  absl::Status status = InLanes(fleet_->map(space()), Shards(), [&](uint32_t shard) {
    return OnTable(shard, Repeat::kAlways, [&](Connection& connection, const Table& table) -> absl::Status {
      uint64_t local = 0;
      {
        Rows last = connection.Prepare(Sql::kLastLocalId, table).Query();
        if (last.Next()) local = last.Uint(1) + 1;
      }
      // The server's counter also covers objects that were removed, whose IDs must not be given again.
      Rows counter = connection.Ask(
          fmt::format("SELECT auto_increment FROM information_schema.tables WHERE table_schema = '{}' AND "
                      "table_name = '{}'",
                      DatabaseName(space(), shard), table.family->name));
      if (counter.Next() && !counter.IsNull(1)) local = std::max(local, counter.Uint(1));
      const MutexLock lock(mutex);
      if (local > 1) next[shard] = local;
      return absl::OkStatus();
    });
  });
  if (!status.ok()) return status;
  return next;
}

absl::Status MySqlEndpoint::RaiseLocalIds(uint64_t epoch, const std::map<uint32_t, uint64_t>& next) {
  const auto current = NextLocalIds();
  if (!current.ok()) return current.status();
  for (const auto& [shard, least] : next) {
    if (fleet_->map(space()).Find(shard) == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("shard {} has objects, and is not open here", DatabaseName(space(), shard)));
    }
    if (const auto found = current->find(shard); found != current->end() && found->second >= least) continue;
    if (least <= 1) continue;
    const uint64_t value = least;
    absl::Status status =
        OnTable(shard, Repeat::kAlways, [&](Connection& connection, const Table& table) -> absl::Status {
          const MigrationLock lock(connection, spec_, table.shard);
          if (!lock.held()) return MigrationLockedError(spec_);
          if (ReadShardMigration(connection, spec_, table.shard).epoch != epoch) {
            return absl::AbortedError("another worker of the migration has taken over");
          }
          // If the table is missing, this prepared statement lets Fleet::Run say why; Run knows no table.
          connection.Prepare(Sql::kObjectsFrom, table).Bind(ObjectId::kMaxLocal).Bind(uint64_t{1}).Query();
          connection.Run(fmt::format("ALTER TABLE {} AUTO_INCREMENT = {}", table.QualifiedName(), value));
          return absl::OkStatus();
        });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kvstore::mysql
