#include "backends/mysql/changes/unit_values.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {
namespace {

/// So many units are read at once: columns may be large.
constexpr size_t kUnitsAtOnce = 64;
/// A follower is told only the newest cells of a column that has more bytes than this.
constexpr size_t kMaxToldBytes = size_t{1} << 20;

size_t SizeOf(const Unit& unit) {
  size_t bytes = unit.key.size();
  for (const Cell& cell : unit.cells) bytes += cell.value.size() + sizeof(Cell);
  return bytes;
}

/// Leaves out the cells that are too many; returns whether there were such.
bool Shorten(Unit& unit) {
  size_t bytes = 0;
  for (size_t i = 0; i < unit.cells.size(); ++i) {
    bytes += unit.cells[i].value.size() + sizeof(Cell);
    if (bytes <= kMaxToldBytes || i == 0) continue;
    unit.cells.resize(i);
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<Unit>> UnitValues::Read(std::span<const std::string> keys) {
  const ShardSpace space = dataset_->family.space;
  const uint32_t mod_shards = space == ShardSpace::kMod ? fleet_->mod_shards() : 1;
  std::map<uint32_t, std::vector<size_t>> by_shard;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto shard = ShardOfUnit(kind_, keys[i], mod_shards);
    if (!shard.ok()) return shard.status();
    by_shard[*shard].push_back(i);
  }
  std::vector<uint32_t> shards;
  for (const auto& [shard, places] : by_shard) shards.push_back(shard);
  std::vector<Unit> units(keys.size());
  std::vector<absl::Status> statuses(shards.size());
  const uint64_t now = WallClockMs();
  const auto read = [&](size_t i) {
    statuses[i] = fleet_->Run(space, shards[i], Repeat::kAlways, [&](Connection& connection) -> absl::Status {
      ReadUnits(connection, dataset_->TableOn(shards[i]), kind_, Visible(*dataset_, connection, now), keys,
                by_shard.at(shards[i]), units);
      return absl::OkStatus();
    });
  };
  fleet_->ForEach(space, shards, read);
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return units;
}

absl::StatusOr<bool> UnitValues::Append(std::span<const LoggedUnit> units,
                                        const std::function<std::string(const LogPlace& after)>& position,
                                        std::vector<UnitChange>& changes) {
  for (size_t begin = 0; begin < units.size(); begin += kUnitsAtOnce) {
    if (auto over = CheckCall(); !over.ok()) return over;
    const auto some = units.subspan(begin, std::min(kUnitsAtOnce, units.size() - begin));
    std::map<std::string, size_t> places;
    std::vector<std::string> keys;
    for (const LoggedUnit& unit : some) {
      if (places.emplace(unit.key, keys.size()).second) keys.push_back(unit.key);
    }
    const auto read = Read(keys);
    if (!read.ok()) return read.status();
    for (const LoggedUnit& logged : some) {
      UnitChange change{.position = {}, .at_ms = logged.at_ms, .unit = (*read)[places[logged.key]]};
      change.unit.key = logged.key;
      if (kind_.shape == Shape::kRows) change.more = Shorten(change.unit);
      const size_t bytes = SizeOf(change.unit);
      if (bytes > left_ && !changes.empty()) return false;
      left_ -= std::min(bytes, left_);
      change.position = position(logged.after);
      changes.push_back(std::move(change));
    }
  }
  return true;
}

}  // namespace kvstore::mysql
