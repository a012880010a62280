#include "backends/mysql/units/fleet_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backend_api/unit_key.h"
#include "backends/mysql/units/lanes.h"
#include "backends/mysql/units/unit_scan.h"
#include "base/mutex.h"

namespace kvstore::mysql {

absl::StatusOr<std::map<uint32_t, std::vector<size_t>>> FleetUnits::ByShard(
    size_t count, const std::function<std::string_view(size_t)>& key) const {
  std::map<uint32_t, std::vector<size_t>> by_shard;
  const uint32_t mod_shards = space() == ShardSpace::kMod ? fleet_->mod_shards() : 1;
  for (size_t i = 0; i < count; ++i) {
    const auto shard = ShardOfUnit(kind_, key(i), mod_shards);
    if (!shard.ok()) return shard.status();
    by_shard[*shard].push_back(i);
  }
  return by_shard;
}

absl::Status FleetUnits::OnAll(const std::function<absl::Status(Connection&, uint32_t)>& work) const {
  const std::vector<uint32_t> shards = access_.shards();
  Mutex mutex;  // guards first
  absl::Status first;
  fleet_->ForEach(space(), shards, [&](size_t i) {
    absl::Status status =
        fleet_->Run(space(), shards[i], Repeat::kAlways,
                    [&](Connection& connection) -> absl::Status { return work(connection, shards[i]); });
    if (status.ok()) return;
    const MutexLock lock(mutex);
    if (first.ok()) first = std::move(status);
  });
  return first;
}

std::vector<UnitRange> FleetUnits::Partitions() const {
  std::vector<UnitRange> ranges;
  for (const uint32_t shard : InTurns(fleet_->map(space()), access_.shards())) {
    ranges.push_back({.shard = DatabaseName(space(), shard)});
  }
  return ranges;
}

absl::StatusOr<std::vector<Unit>> FleetUnits::Read(std::span<const std::string> keys, uint64_t as_of) const {
  const auto by_shard = ByShard(keys.size(), [&](size_t i) { return std::string_view(keys[i]); });
  if (!by_shard.ok()) return by_shard.status();
  std::vector<Unit> units(keys.size());
  absl::Status status =
      InLanes(fleet_->map(space()), *by_shard, [&](uint32_t shard, std::span<const size_t> places) {
        return access_.read(shard, [&](Connection& connection, const Table& table) {
          ReadUnits(connection, table, kind_, Visible(dataset_, connection, as_of), keys, places, units);
          return absl::OkStatus();
        });
      });
  if (!status.ok()) return status;
  return units;
}

absl::StatusOr<std::unique_ptr<UnitScan>> FleetUnits::Scan(const UnitRange& range, uint64_t as_of) const {
  std::vector<uint32_t> shards = access_.shards();
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
      return absl::InvalidArgumentError(
          fmt::format("partition: '{}' is not an open shard of this dataset; shards have names such as {}",
                      range.shard, DatabaseName(space(), 7)));
    }
  }
  ShardReader reader{
      .list = [this, as_of](uint32_t shard, std::string_view from,
                            std::string_view end) -> absl::StatusOr<UnitList> {
        UnitList list;
        absl::Status status =
            access_.read(shard, [&](Connection& connection, const Table& table) -> absl::Status {
              list = ListUnits(connection, table, kind_, Visible(dataset_, connection, as_of), from, end);
              return absl::OkStatus();
            });
        if (!status.ok()) return status;
        return list;
      },
      .for_each = [this](std::span<const uint32_t> some,
                         const std::function<void(size_t)>& work) { fleet_->ForEach(space(), some, work); }};
  return std::make_unique<MySqlUnitScan>(std::move(reader), shards, range, kind_.shape == Shape::kRows);
}

absl::StatusOr<uint64_t> FleetUnits::LastTimestamp() const {
  if (kind_.shape != Shape::kRows) return 0;
  uint64_t last = 0;
  Mutex mutex;  // guards last
  absl::Status status = OnAll([&](Connection& connection, uint32_t shard) -> absl::Status {
    Rows rows = connection.Prepare(Sql::kLastOfClock, dataset_.TableOn(shard)).Query();
    rows.Next();
    const MutexLock lock(mutex);
    last = std::max(last, rows.Uint(1));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return last;
}

absl::StatusOr<LocalIdFloors> FleetUnits::NextLocalIds() const {
  LocalIdFloors next;
  if (kind_.shape != Shape::kObjects) return next;
  Mutex mutex;  // guards next
  absl::Status status = InLanes(fleet_->map(space()), access_.shards(), [&](uint32_t shard) {
    return access_.read(shard, [&](Connection& connection, const Table& table) -> absl::Status {
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
      if (local > 1) next.shards[shard] = local;
      return absl::OkStatus();
    });
  });
  if (!status.ok()) return status;
  return next;
}

}  // namespace kvstore::mysql
