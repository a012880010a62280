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
#include "base/mutex.h"
#include "idgen/object_id.h"

/// The changes that a migration makes on the shards, in dirty logs, units, clocks and counters. endpoint.cc
/// has the shards and their states, fleet_units.h what is read there.
namespace kvstore::mysql {
namespace {

/// Entries of a shard's dirty log are counted up to this number.
constexpr uint64_t kMaxCounted = 100'000;

}  // namespace

// ---- the dirty log ----

absl::StatusOr<std::vector<DirtyEntry>> MySqlEndpoint::ReadDirty(size_t limit) {
  std::vector<DirtyEntry> all;
  Mutex mutex;  // guards all
  absl::Status status = units_.OnAll([&](Connection& connection, uint32_t shard) -> absl::Status {
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
  return InLanes(fleet_->map(space()), by_shard, [&](uint32_t shard, std::span<const size_t> places) {
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
  absl::Status status = units_.OnAll([&](Connection& connection, uint32_t shard) -> absl::Status {
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

absl::Status MySqlEndpoint::Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) {
  const auto by_shard =
      units_.ByShard(units.size(), [&](size_t i) { return std::string_view(units[i].key); });
  if (!by_shard.ok()) return by_shard.status();
  const auto limited = limit();
  return InLanes(fleet_->map(space()), *by_shard, [&](uint32_t shard, std::span<const size_t> places) {
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

absl::Status MySqlEndpoint::RaiseTimestamp(uint64_t, uint64_t timestamp) {
  if (kind_.shape != Shape::kRows) return absl::OkStatus();
  return units_.OnAll([&](Connection& connection, uint32_t shard) -> absl::Status {
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

absl::Status MySqlEndpoint::RaiseLocalIds(uint64_t epoch, const LocalIdFloors& next) {
  if (kind_.shape != Shape::kObjects) return absl::OkStatus();
  const auto current = NextLocalIds();
  if (!current.ok()) return current.status();
  const ShardMap& map = fleet_->map(space());
  std::map<uint32_t, uint64_t> wanted = next.shards;
  for (const auto& [shard, least] : next.shards) {
    if (map.Find(shard) == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("shard {} has objects, and is not open here", DatabaseName(space(), shard)));
    }
  }
  if (next.others > 1) {
    for (const uint32_t shard : Shards()) wanted.try_emplace(shard, next.others);
  }
  std::vector<uint32_t> lower;
  for (const auto& [shard, least] : wanted) {
    const auto found = current->shards.find(shard);
    if (least > (found == current->shards.end() ? 1 : found->second)) lower.push_back(shard);
  }
  return InLanes(map, lower, [&](uint32_t shard) {
    return OnTable(shard, Repeat::kAlways, [&](Connection& connection, const Table& table) -> absl::Status {
      const MigrationLock lock(connection, spec_, table.shard);
      if (!lock.held()) return MigrationLockedError(spec_);
      if (ReadShardMigration(connection, spec_, table.shard).epoch != epoch) {
        return absl::AbortedError("another worker of the migration has taken over");
      }
      // If the table is missing, this prepared statement lets Fleet::Run say why; Run knows no table.
      connection.Prepare(Sql::kObjectsFrom, table).Bind(ObjectId::kMaxLocal).Bind(uint64_t{1}).Query();
      connection.Run(
          fmt::format("ALTER TABLE {} AUTO_INCREMENT = {}", table.QualifiedName(), wanted.at(shard)));
      return absl::OkStatus();
    });
  });
}

}  // namespace kvstore::mysql
