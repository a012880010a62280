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
      away_(AwaySpec(spec), numbers + 1),
      units_(fleet_, kind_, base_,
             {.shards = [this] { return Shards(); },
              .read = [this](uint32_t shard,
                             const ReadTable& work) { return OnTable(shard, Repeat::kAlways, work); }}) {}

// ---- shards ----

std::vector<uint32_t> MySqlEndpoint::Shards() const {
  if (const auto limited = limit()) return *limited;
  return ShardsOf(fleet_->map(space()));
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

absl::Status MySqlEndpoint::OnTable(uint32_t shard, Repeat repeat, const ReadTable& work) {
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

// ---- states ----

absl::StatusOr<EndpointStatus> MySqlEndpoint::Status() {
  EndpointStatus all{.capture = true};
  Mutex mutex;  // guards all
  absl::Status status = units_.OnAll([&](Connection& connection, uint32_t shard) -> absl::Status {
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

absl::Status MySqlEndpoint::MakeAllTables() {
  TableMaker* const maker = fleet_->table_maker();
  if (maker == nullptr || !maker->MayLackTables(spec_)) return absl::OkStatus();
  absl::Status made = units_.OnAll([&](Connection& connection, uint32_t shard) {
    return maker->MakeUnlessMade(connection, spec_, shard);
  });
  if (!made.ok()) return made;
  // From now on a missing table is an error, here and where the dataset migrates to.
  return maker->records().End(spec_);
}

absl::Status MySqlEndpoint::RaiseEpoch(uint64_t epoch) {
  // A shard without the table would be taken for one that the dataset migrates to.
  if (auto status = MakeAllTables(); !status.ok()) return status;
  return units_.OnAll([&](Connection& connection, uint32_t shard) -> absl::Status {
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
