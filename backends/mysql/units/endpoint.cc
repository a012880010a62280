#include "backends/mysql/units/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "backend_api/outcome.h"
#include "backends/mysql/driver/schema.h"
#include "backends/mysql/driver/server_lock.h"
#include "backends/mysql/units/lanes.h"
#include "backends/mysql/units/migration_tables.h"

/// Which shards a migration sees, and their states. endpoint_data.cc has the rest.
namespace kvstore::mysql {

MySqlEndpoint::MySqlEndpoint(std::shared_ptr<Fleet> fleet, const DatasetSpec& spec, uint32_t numbers)
    : fleet_(std::move(fleet)),
      spec_(spec),
      kind_{spec.shape, spec.type},
      kind_space_(SpaceOf(spec.shape)),
      base_(spec, numbers),
      away_(AwaySpec(spec), numbers + 1) {}

// ---- shards ----

std::vector<uint32_t> MySqlEndpoint::Shards() const {
  if (const auto limited = limit()) return *limited;
  std::vector<uint32_t> shards;
  for (const ShardRange& range : fleet_->map(space()).ranges()) {
    for (uint32_t shard = range.first; shard <= range.last; ++shard) shards.push_back(shard);
  }
  return shards;
}

absl::Status MySqlEndpoint::OnAll(Repeat repeat,
                                  const std::function<absl::Status(Connection&, uint32_t)>& work) {
  const std::vector<uint32_t> shards = Shards();
  Mutex mutex;  // guards first
  absl::Status first;
  fleet_->ForEach(space(), shards, [&](size_t i) {
    absl::Status status =
        fleet_->Run(space(), shards[i], repeat,
                    [&](Connection& connection) -> absl::Status { return work(connection, shards[i]); });
    if (status.ok()) return;
    const MutexLock lock(mutex);
    if (first.ok()) first = std::move(status);
  });
  return first;
}

absl::StatusOr<std::string> MySqlEndpoint::Extent() {
  std::string text;
  for (const ShardRange& range : fleet_->map(space()).ranges()) {
    text += fmt::format("{}{}-{}", text.empty() ? "" : ",", range.first, range.last);
  }
  return text;
}

absl::Status MySqlEndpoint::Limit(const std::string& extent) {
  std::vector<uint32_t> shards;
  for (const absl::string_view part : absl::StrSplit(extent, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(part, '-');
    uint32_t first = 0;
    uint32_t last = 0;
    if (!absl::SimpleAtoi(ends.first, &first) || !absl::SimpleAtoi(ends.second, &last) || first > last ||
        last > ShardMap::kMaxShard || (!shards.empty() && first <= shards.back())) {
      return absl::InvalidArgumentError(
          fmt::format("extent: '{}' is not a list of ranges of shards such as 0-7,16-23", extent));
    }
    for (uint32_t shard = first; shard <= last; ++shard) shards.push_back(shard);
  }
  const MutexLock lock(limit_mutex_);
  limit_ = shards.empty() ? nullptr : std::make_shared<const Numbers>(std::move(shards));
  return absl::OkStatus();
}

absl::Status MySqlEndpoint::OnTable(uint32_t shard, Repeat repeat,
                                    const std::function<absl::Status(Connection&, const Table&)>& work) {
  for (int attempt = 1;; ++attempt) {
    absl::Status status = fleet_->Run(space(), shard, repeat, [&](Connection& connection) -> absl::Status {
      if (auto same = CheckServer(connection, shard); !same.ok()) return same;
      return work(connection, IsAway(connection, shard) ? away_.TableOn(shard) : base_.TableOn(shard));
    });
    if (!IsMigrating(status) || attempt == 2) return status;
    const MutexLock lock(mutex_);
    is_away_.erase(shard);
  }
}

absl::Status MySqlEndpoint::CheckServer(Connection& connection, uint32_t shard) {
  const std::string& server = connection.BootId();
  const MutexLock lock(mutex_);
  const auto known = servers_.find(shard);
  if (known == servers_.end() || known->second == server) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("the host of shard {} was restarted or replaced", DatabaseName(space(), shard)));
}

bool MySqlEndpoint::IsAway(Connection& connection, uint32_t shard) {
  {
    const MutexLock lock(mutex_);
    if (const auto known = is_away_.find(shard); known != is_away_.end()) return known->second;
  }
  const bool away = !ReadShardMigration(connection, spec_, shard).base;
  const MutexLock lock(mutex_);
  is_away_[shard] = away;
  return away;
}

absl::StatusOr<std::map<uint32_t, std::vector<size_t>>> MySqlEndpoint::ByShard(
    size_t count, const std::function<std::string_view(size_t)>& key) const {
  std::map<uint32_t, std::vector<size_t>> by_shard;
  const uint32_t mod_shards = space() == Space::kMod ? fleet_->mod_shards() : 1;
  for (size_t i = 0; i < count; ++i) {
    const auto shard = ShardOfUnit(kind_, key(i), mod_shards);
    if (!shard.ok()) return shard.status();
    by_shard[*shard].push_back(i);
  }
  return by_shard;
}

absl::Status MySqlEndpoint::ForShards(
    const std::map<uint32_t, std::vector<size_t>>& by_shard,
    const std::function<absl::Status(uint32_t, std::span<const size_t>)>& work) {
  std::vector<uint32_t> shards;
  for (const auto& [shard, places] : by_shard) shards.push_back(shard);
  return InLanes(fleet_->map(space()), shards,
                 [&](uint32_t shard) { return work(shard, by_shard.at(shard)); });
}

// ---- states ----

absl::StatusOr<EndpointStatus> MySqlEndpoint::Status() {
  EndpointStatus all{.capture = true};
  Mutex mutex;  // guards all
  absl::Status status = OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    const ShardMigration migration = ReadShardMigration(connection, spec_, shard);
    const MutexLock lock(mutex);
    ++all.partitions[migration.at];
    all.capture = all.capture && migration.capture;
    all.epoch = std::max(all.epoch, migration.epoch);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return all;
}

absl::StatusOr<std::string> MySqlEndpoint::BootId() {
  std::map<Host, uint32_t> hosts;  // with one shard of each
  const ShardMap& map = fleet_->map(space());
  for (const uint32_t shard : Shards()) {
    const ShardRange* const range = map.Find(shard);
    if (range != nullptr) hosts.emplace(range->master, shard);
  }
  std::string all;
  for (const auto& [host, shard] : hosts) {
    const auto boot = fleet_->RunOn(host, {space(), shard}, Repeat::kAlways,
                                    [](Connection& connection) -> absl::StatusOr<std::string> {
                                      // A connection remembers its BootId. The statement fails if the
                                      // server was restarted since.
                                      connection.Ask("SELECT 1");
                                      return connection.BootId();
                                    });
    if (!boot.ok()) return boot.status();
    all += fmt::format("{} {};", host.ToString(), *boot);
  }
  return all;
}

absl::Status MySqlEndpoint::RaiseEpoch(uint64_t epoch) {
  return OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    const MigrationLock lock(connection, spec_, shard);
    if (!lock.held()) return MigrationLockedError(spec_);
    if (auto status = mysql::RaiseEpoch(connection, spec_, shard, epoch); !status.ok()) return status;
    std::string server = connection.BootId();
    const MutexLock known(mutex_);
    servers_.insert_or_assign(shard, std::move(server));
    return absl::OkStatus();
  });
}

absl::Status MySqlEndpoint::TransitionTo(uint64_t epoch, EndpointState state, bool capture) {
  return Sweep([&](Connection& connection, uint32_t shard) {
    return TransitionShard(connection, spec_, shard, epoch, state, capture);
  });
}

absl::Status MySqlEndpoint::Reassert(uint64_t epoch, EndpointState state, bool capture) {
  return Sweep([&](Connection& connection, uint32_t shard) {
    return ReassertShard(connection, spec_, shard, epoch, state, capture);
  });
}

absl::Status MySqlEndpoint::Sweep(const std::function<absl::Status(Connection&, uint32_t)>& change) {
  return InLanes(fleet_->map(space()), Shards(), [&](uint32_t shard) {
    return fleet_->Run(space(), shard, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
      const MigrationLock lock(connection, spec_, shard);
      if (!lock.held()) return MigrationLockedError(spec_);
      if (auto same = CheckServer(connection, shard); !same.ok()) return same;
      absl::Status status = change(connection, shard);
      const MutexLock known(mutex_);
      is_away_.erase(shard);
      return status;
    });
  });
}

absl::Status MySqlEndpoint::LockState(Connection& connection, uint32_t shard, uint64_t epoch,
                                      bool* takes_units) {
  if (auto same = CheckServer(connection, shard); !same.ok()) return same;
  Rows rows = connection.Prepare(Sql::kLockState, base_.TableOn(shard)).Query();
  if (!rows.Next()) return absl::AbortedError("the migration is gone from this shard");
  if (rows.Uint(1) != epoch) {
    return absl::AbortedError(fmt::format(
        "the migration's worker has epoch {}, another one has taken over with {}", epoch, rows.Uint(1)));
  }
  const auto state = static_cast<EndpointState>(rows.Uint(2));
  *takes_units = state == EndpointState::kImporting || state == EndpointState::kMoved;
  return absl::OkStatus();
}

}  // namespace kvstore::mysql
