#include "backends/mysql/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "backends/mysql/move_schema.h"
#include "backends/mysql/row_writer.h"
#include "backends/mysql/schema.h"
#include "backends/mysql/unit_scan.h"
#include "idgen/object_id.h"
#include "kvstore_api/moved.h"
#include "kvstore_api/unit_key.h"

namespace kvstore::mysql {
namespace {

constexpr uint64_t kMaxCounted = 100'000;
/// Shards of a host that are worked on at once, and of all hosts.
constexpr size_t kHostLanes = 8;
constexpr size_t kLanes = 64;

/// The shards in the order in which work on them keeps all hosts busy: one of each host in turn.
std::vector<uint32_t> InTurns(const ShardMap& map, const std::vector<uint32_t>& shards) {
  std::map<Host, std::deque<uint32_t>> by_host;
  for (const uint32_t shard : shards) {
    const ShardRange* const range = map.Find(shard);
    by_host[range == nullptr ? Host() : range->master].push_back(shard);
  }
  std::vector<uint32_t> ordered;
  while (ordered.size() < shards.size()) {
    for (auto& [host, left] : by_host) {
      if (left.empty()) continue;
      ordered.push_back(left.front());
      left.pop_front();
    }
  }
  return ordered;
}

size_t CountHosts(const ShardMap& map) {
  std::set<Host> hosts;
  for (const ShardRange& range : map.ranges()) hosts.insert(range.master);
  return hosts.size();
}

/// Calls `work` for each, several shards of a host at once: what waits for this are clients, or the worker's
/// next step. The first failure; all are tried.
absl::Status InLanes(const ShardMap& map, const std::vector<uint32_t>& shards,
                     const std::function<absl::Status(uint32_t)>& work) {
  const std::vector<uint32_t> ordered = InTurns(map, shards);
  std::atomic<size_t> next{0};
  std::mutex mutex;  // guards first
  absl::Status first;
  const auto run = [&] {
    for (size_t i = next++; i < ordered.size(); i = next++) {
      absl::Status status = work(ordered[i]);
      const std::lock_guard lock(mutex);
      if (first.ok()) first = std::move(status);
    }
  };
  const size_t most = std::min({ordered.size(), kHostLanes * CountHosts(map), kLanes});
  std::vector<std::thread> lanes;
  for (size_t i = 1; i < most; ++i) lanes.emplace_back(run);
  run();
  for (std::thread& lane : lanes) lane.join();
  return first;
}

absl::Status Locked(const DatasetSpec& spec) {
  return absl::UnavailableError(
      fmt::format("dataset: another worker of the migration of '{}' is at this shard", spec.name));
}

}  // namespace

MySqlEndpoint::MySqlEndpoint(std::shared_ptr<Fleet> fleet, const DatasetSpec& spec, uint32_t numbers)
    : fleet_(std::move(fleet)),
      spec_(spec),
      kind_{spec.shape, spec.type},
      kind_space_(SpaceOf(spec.shape)),
      base_(spec, numbers),
      away_(Away(spec), numbers + 1) {}

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
  std::mutex mutex;  // guards first
  absl::Status first;
  fleet_->ForEach(space(), shards, [&](size_t i) {
    absl::Status status =
        fleet_->Run(space(), shards[i], repeat,
                    [&](Connection& connection) -> absl::Status { return work(connection, shards[i]); });
    if (status.ok()) return;
    const std::lock_guard lock(mutex);
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
  const std::lock_guard lock(limit_mutex_);
  limit_ = shards.empty() ? nullptr : std::make_shared<const Numbers>(std::move(shards));
  return absl::OkStatus();
}

absl::Status MySqlEndpoint::OnTable(uint32_t shard, Repeat repeat,
                                    const std::function<absl::Status(Connection&, const Table&)>& work) {
  for (int attempt = 1;; ++attempt) {
    absl::Status status = fleet_->Run(space(), shard, repeat, [&](Connection& connection) -> absl::Status {
      if (auto same = CheckServer(connection, shard); !same.ok()) return same;
      return work(connection, IsAway(connection, shard) ? away_.On(shard) : base_.On(shard));
    });
    if (!IsMoving(status) || attempt == 2) return status;
    const std::lock_guard lock(mutex_);
    is_away_.erase(shard);
  }
}

absl::Status MySqlEndpoint::CheckServer(Connection& connection, uint32_t shard) {
  const std::string& server = connection.Boot();
  const std::lock_guard lock(mutex_);
  const auto known = servers_.find(shard);
  if (known == servers_.end() || known->second == server) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("the host of shard {} was restarted or replaced", DatabaseName(space(), shard)));
}

bool MySqlEndpoint::IsAway(Connection& connection, uint32_t shard) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = is_away_.find(shard); known != is_away_.end()) return known->second;
  }
  const bool away = !ReadMoving(connection, spec_, shard).base;
  const std::lock_guard lock(mutex_);
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
  std::mutex mutex;  // guards all
  absl::Status status = OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    const Moving moving = ReadMoving(connection, spec_, shard);
    const std::lock_guard lock(mutex);
    ++all.partitions[moving.at];
    all.capture = all.capture && moving.capture;
    all.epoch = std::max(all.epoch, moving.epoch);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return all;
}

absl::StatusOr<std::string> MySqlEndpoint::Boot() {
  std::map<Host, uint32_t> hosts;  // and a shard of each
  const ShardMap& map = fleet_->map(space());
  for (const uint32_t shard : Shards()) {
    const ShardRange* const range = map.Find(shard);
    if (range != nullptr) hosts.emplace(range->master, shard);
  }
  std::string all;
  for (const auto& [host, shard] : hosts) {
    const auto boot = fleet_->RunOn(host, {space(), shard}, Repeat::kAlways,
                                    [](Connection& connection) -> absl::StatusOr<std::string> {
                                      // What is known of a connection holds as long as the connection.
                                      connection.Ask("SELECT 1");
                                      return connection.Boot();
                                    });
    if (!boot.ok()) return boot.status();
    all += fmt::format("{} {};", host.ToString(), *boot);
  }
  return all;
}

absl::Status MySqlEndpoint::RaiseEpoch(uint64_t epoch) {
  return OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    const MoveLock lock(connection, spec_, shard);
    if (!lock.held()) return Locked(spec_);
    if (auto status = mysql::RaiseEpoch(connection, spec_, shard, epoch); !status.ok()) return status;
    std::string server = connection.Boot();
    const std::lock_guard known(mutex_);
    servers_.insert_or_assign(shard, std::move(server));
    return absl::OkStatus();
  });
}

absl::Status MySqlEndpoint::Enter(uint64_t epoch, EndpointState state, bool capture) {
  return Sweep([&](Connection& connection, uint32_t shard) {
    return EnterState(connection, spec_, shard, epoch, state, capture);
  });
}

absl::Status MySqlEndpoint::Reassert(uint64_t epoch, EndpointState state, bool capture) {
  return Sweep([&](Connection& connection, uint32_t shard) {
    return ReassertState(connection, spec_, shard, epoch, state, capture);
  });
}

absl::Status MySqlEndpoint::Sweep(const std::function<absl::Status(Connection&, uint32_t)>& change) {
  return InLanes(fleet_->map(space()), Shards(), [&](uint32_t shard) {
    return fleet_->Run(space(), shard, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
      const MoveLock lock(connection, spec_, shard);
      if (!lock.held()) return Locked(spec_);
      if (auto same = CheckServer(connection, shard); !same.ok()) return same;
      absl::Status status = change(connection, shard);
      const std::lock_guard known(mutex_);
      is_away_.erase(shard);
      return status;
    });
  });
}

absl::Status MySqlEndpoint::HoldState(Connection& connection, uint32_t shard, uint64_t epoch,
                                      bool* takes_units) {
  if (auto same = CheckServer(connection, shard); !same.ok()) return same;
  Rows rows = connection.Prepare(Sql::kLockState, base_.On(shard)).Query();
  if (!rows.Next()) return absl::AbortedError("the migration is gone from this shard");
  if (rows.Uint(1) != epoch) {
    return absl::AbortedError(fmt::format(
        "the migration's worker has epoch {}, another one has taken over with {}", epoch, rows.Uint(1)));
  }
  const auto state = static_cast<EndpointState>(rows.Uint(2));
  *takes_units = state == EndpointState::kImporting || state == EndpointState::kMoved;
  return absl::OkStatus();
}

// ---- the dirty log ----

absl::StatusOr<std::vector<DirtyEntry>> MySqlEndpoint::ReadDirty(size_t limit) {
  std::vector<DirtyEntry> all;
  std::mutex mutex;  // guards all
  absl::Status status = OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    if (auto same = CheckServer(connection, shard); !same.ok()) return same;
    auto entries = mysql::ReadDirty(connection, base_.On(shard), kind_, limit);
    const std::lock_guard lock(mutex);
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
      if (auto status = HoldState(connection, shard, epoch, &unused); !status.ok()) return status;
      mysql::RemoveDirty(connection, base_.On(shard), ids);
      transaction.Commit();
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<DirtyLag> MySqlEndpoint::Lag() {
  DirtyLag all;
  std::mutex mutex;  // guards all
  absl::Status status = OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    Rows rows = connection.Prepare(Sql::kDirtyLag, base_.On(shard)).Bind(kMaxCounted).Query();
    rows.Next();
    const std::lock_guard lock(mutex);
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
    // One row, which lies on one shard.
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
  return std::make_unique<MySqlUnitScan>(*this, shards, range, as_of);
}

absl::Status MySqlEndpoint::Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) {
  const auto by_shard = ByShard(units.size(), [&](size_t i) { return std::string_view(units[i].key); });
  if (!by_shard.ok()) return by_shard.status();
  const auto limited = limit();
  return ForShards(*by_shard, [&](uint32_t shard, std::span<const size_t> places) {
    if (fleet_->map(space()).Find(shard) == nullptr) {
      return absl::Status(absl::InvalidArgumentError(fmt::format(
          "shard {} is not open: open it before the dataset moves here", DatabaseName(space(), shard))));
    }
    if (limited && !std::binary_search(limited->begin(), limited->end(), shard)) {
      return absl::Status(absl::UnavailableError(fmt::format(
          "shard {} was opened after the migration of '{}' had begun: its worker takes it in soon",
          DatabaseName(space(), shard), spec_.name)));
    }
    return fleet_->Run(space(), shard, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
      Transaction transaction(connection, Transaction::Kind::kWrite);
      bool takes_units = false;
      if (auto status = HoldState(connection, shard, epoch, &takes_units); !status.ok()) return status;
      if (!takes_units) {
        return absl::FailedPreconditionError(
            fmt::format("dataset: '{}' takes nothing from a migration here", spec_.name));
      }
      WriteUnits(connection, away_.On(shard), kind_, units, places, fresh);
      transaction.Commit();
      return absl::OkStatus();
    });
  });
}

// ---- clocks and counters ----

absl::StatusOr<uint64_t> MySqlEndpoint::LastTimestamp() {
  if (kind_.shape != Shape::kRows) return 0;
  uint64_t last = 0;
  std::mutex mutex;  // guards last
  absl::Status status = OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    Rows rows = connection.Prepare(Sql::kLastOfClock, base_.On(shard)).Query();
    rows.Next();
    const std::lock_guard lock(mutex);
    last = std::max(last, rows.Uint(1));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return last;
}

absl::Status MySqlEndpoint::RaiseTimestamp(uint64_t, uint64_t timestamp) {
  if (kind_.shape != Shape::kRows) return absl::OkStatus();
  return OnAll(Repeat::kAlways, [&](Connection& connection, uint32_t shard) -> absl::Status {
    // Also where the server's time is past it: its slave's, which may follow, need not be.
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
  std::mutex mutex;  // guards next
  absl::Status status = InLanes(fleet_->map(space()), Shards(), [&](uint32_t shard) {
    return OnTable(shard, Repeat::kAlways, [&](Connection& connection, const Table& table) -> absl::Status {
      uint64_t local = 0;
      {
        Rows last = connection.Prepare(Sql::kLastLocalId, table).Query();
        if (last.Next()) local = last.Uint(1) + 1;
      }
      // IDs of objects that were removed are not given again either.
      Rows counter = connection.Ask(
          fmt::format("SELECT auto_increment FROM information_schema.tables WHERE table_schema = '{}' AND "
                      "table_name = '{}'",
                      DatabaseName(space(), shard), table.family->name));
      if (counter.Next() && !counter.IsNull(1)) local = std::max(local, counter.Uint(1));
      const std::lock_guard lock(mutex);
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
          const MoveLock lock(connection, spec_, table.shard);
          if (!lock.held()) return Locked(spec_);
          if (ReadMoving(connection, spec_, table.shard).epoch != epoch) {
            return absl::AbortedError("another worker of the migration has taken over");
          }
          // The statement tells which table is missing, if it is.
          connection.Prepare(Sql::kObjectsFrom, table).Bind(ObjectId::kMaxLocal).Bind(uint64_t{1}).Query();
          connection.Run(fmt::format("ALTER TABLE {} AUTO_INCREMENT = {}", table.QualifiedName(), value));
          return absl::OkStatus();
        });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kvstore::mysql
