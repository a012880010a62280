#include "backends/mysql/fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "backend_api/outcome.h"
#include "backends/mysql/driver/schema.h"
#include "backends/mysql/fleet/shard_tables.h"

namespace kvstore::mysql {
namespace {

constexpr size_t kMaxWorkers = 64;
/// How many attempts are made while the transaction loses to others.
constexpr int kMaxConflicts = 20;

/// Returns the error for a statement whose table is missing, and says why it is: the shard moves or has
/// moved, the dataset migrates or has migrated, or the table was never made. Throws the connector's
/// exceptions.
absl::Status MissingTableError(Connection& connection, const sql::SQLException& why) {
  // An operator must be told to make a table anew only if it exists nowhere else: a second one would take
  // writes that are lost once the first one is found.
  const std::string text = fmt::format("{} (error {})", why.what(), why.getErrorCode());
  // The shard is moving to another host, or was moved there: the map in force will soon say where.
  if (HasMoved(connection, connection.last_table()->family->space, connection.last_table()->shard)) {
    return WritesHeldError(text +
                           "; the shard is moving to another host, or has moved: if this error persists, "
                           "see kv shards move status");
  }
  if (HasMigration(connection, *connection.last_table())) {
    return ServedElsewhereError(
        text +
        "; the dataset is migrating to another backend, or has migrated: if this error persists, see "
        "kv migrate status");
  }
  // The router reads the catalog again after a GoneError, and returns this message only if the catalog still
  // has the dataset here. Then kv shards init is right; it reads the catalog too, and makes nothing that is
  // elsewhere.
  return GoneError(
      absl::FailedPreconditionError(text + "; kv shards init makes what is missing, if the map is right"));
}

/// Sleeps for a random time, which grows with the attempts, so that transactions that collided do not collide
/// again at once.
void Pause(int attempt) {
  static thread_local std::minstd_rand random(std::random_device{}());
  const auto most = std::chrono::microseconds(200) * (1 << std::min(attempt, 8));
  std::this_thread::sleep_for(most * (random() % 1000) / 1000);
}

}  // namespace

Fleet::Fleet(const MySqlOptions& options, const std::filesystem::path& spreads,
             std::unique_ptr<TableRecords> tables)
    : options_(options),
      table_maker_(tables ? std::make_unique<TableMaker>(std::move(tables)) : nullptr),
      spreads_(spreads, options.weights),
      budget_(options.pool),
      workers_(kMaxWorkers) {}

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Start(MapSources sources, const MySqlOptions& options,
                                                    std::unique_ptr<TableRecords> tables) {
  // Earlier spreads are stored beside the copies of the maps.
  std::filesystem::path kept = sources.id_cache;
  if (!kept.empty()) kept.replace_filename("shards-before.txt");
  std::unique_ptr<Fleet> fleet(new Fleet(options, kept, std::move(tables)));
  Spreads* const spreads = &fleet->spreads_;
  // Weights are read before the map: a spread of the map and the initial weights would be remembered as an
  // earlier one, although it never was in force.
  fleet->weights_ = std::make_unique<WeightsWatcher>(
      std::move(sources.weights), options.weights,
      [spreads](const ShardWeights& weights) { spreads->SetWeights(weights); });
  auto id = ShardMapWatcher::Start(
      std::move(sources.id),
      {.cache = sources.id_cache, .on_update = [spreads](const ShardMap& map) { spreads->SetMap(map); }});
  if (!id.ok()) return id.status();
  fleet->id_watcher_ = *std::move(id);
  // A map that was read from the cache is not reported by on_update.
  if (!spreads->current()) spreads->SetMap(fleet->id_watcher_->map());
  auto mod =
      ShardMapWatcher::Start(std::move(sources.mod), {.cache = sources.mod_cache, .space = ShardSpace::kMod});
  if (!mod.ok()) return mod.status();
  fleet->mod_watcher_ = *std::move(mod);
  return fleet;
}

// ---- pools ----

Pool& Fleet::PoolOf(const Host& host) {
  const MutexLock lock(pools_mutex_);
  Pool*& pool = pools_[host];
  if (pool == nullptr) {
    all_pools_.push_back(std::make_unique<Pool>(host, options_, budget_));
    pool = all_pools_.back().get();
  }
  return *pool;
}

Pool& Fleet::PoolOf(ShardSpace space, const ShardMap& current, const ShardRange& range) {
  const Routes* routes = routes_.at(static_cast<size_t>(space)).load(std::memory_order_acquire);
  if (routes == nullptr || routes->map != &current) routes = &MakeRoutes(space, current);
  return *routes->pools[static_cast<size_t>(&range - current.ranges().data())];
}

const Fleet::Routes& Fleet::MakeRoutes(ShardSpace space, const ShardMap& current) {
  auto routes = std::make_unique<Routes>();
  routes->map = &current;
  for (const ShardRange& range : current.ranges()) routes->pools.push_back(&PoolOf(range.master));
  const MutexLock lock(pools_mutex_);
  all_routes_.push_back(std::move(routes));
  const Routes& made = *all_routes_.back();
  // A call that began with an older map must not put the routes of that one in force again.
  if (&map(space) == &current) {
    routes_.at(static_cast<size_t>(space)).store(&made, std::memory_order_release);
    CloseUnusedPools();
  }
  return made;
}

void Fleet::CloseUnusedPools() {
  std::set<Host> used;
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    for (const ShardRange& range : map(space).ranges()) used.insert(range.master);
  }
  std::erase_if(pools_, [&](const auto& entry) {
    if (used.contains(entry.first)) return false;
    entry.second->Close();
    return true;
  });
}

// ---- failures ----

Fleet::Verdict Fleet::ClassifyFailure(const sql::SQLException& error, Lease& lease, Repeat repeat,
                                      int attempt, Connection::Clock::duration elapsed) const {
  const bool committing = lease->committing();
  switch (Classify(error)) {
    case Trouble::kConflict:
      if (attempt < kMaxConflicts) {
        Pause(attempt);
        return {.again = true};
      }
      return {.status = absl::UnavailableError(fmt::format(
                  "gave up after {} attempts that lost to other transactions: {}", attempt, error.what()))};
    case Trouble::kStatementGone:
      lease->ForgetStatements();
      if (attempt == 1) return {.again = true};
      break;
    case Trouble::kConnection: {
      const absl::Status status = ToStatus(error);
      lease.Fail(status);
      if (attempt == 1 && (repeat != Repeat::kIfNotCommitted || !committing))
        return {.again = true, .in_doubt = committing};
      if (HasTimedOut(elapsed, options_.pool)) {
        return {.in_doubt = committing,
                .status = absl::DeadlineExceededError(
                    fmt::format("no answer within {} s", options_.pool.read_timeout_s))};
      }
      return {.in_doubt = committing, .status = status};
    }
    case Trouble::kRefused:
      if (IsOffline(error)) {
        lease.FailAsNoMaster();
        // The host ends its connections, whatever a write on one of them waits for.
        return {.in_doubt = committing, .status = ToStatus(error)};
      }
      if (IsReadOnly(error)) {
        lease.FailAsNoMaster();
      } else if (committing && (lease->in_transaction() || IsCommitFailure(error))) {
        // A commit that fails midway may have got through or not.
        return {.in_doubt = true, .status = ToStatus(error)};
      }
      break;
  }
  if (IsMissingTable(error) && lease->last_table()) return HandleMissingTable(error, lease, attempt);
  return {.status = ToStatus(error)};
}

Fleet::Verdict Fleet::HandleMissingTable(const sql::SQLException& error, Lease& lease, int attempt) const {
  try {
    absl::Status missing = MissingTableError(*lease, error);
    // While the shard moves or the dataset migrates, the call must not wait for the locks of who does that.
    if (!table_maker_ || !IsGone(missing)) return {.status = std::move(missing)};
    const Table table = *lease->last_table();
    const auto made = table_maker_->MakeMissing(*lease, table, lease->last_shards());
    if (!made.ok()) return {.status = made.status()};
    // By now the shard may have moved, or the dataset migrated.
    if (*made == FirstUse::kNotHere) return {.status = MissingTableError(*lease, error)};
    if (attempt < kMaxConflicts) return {.again = true};
    return {.status = TablesBusyError(DatabaseName(table.family->space, table.shard))};
  } catch (const sql::SQLException& failure) {
    absl::Status status = ToStatus(failure);
    if (Classify(failure) == Trouble::kConnection) lease.Fail(status);
    return {.status = std::move(status)};
  }
}

absl::Status Fleet::WithPlace(const Place& place, const Host& host, const absl::Status& status,
                              bool in_doubt) {
  const std::string shard =
      place.shard ? fmt::format("shard {} at ", DatabaseName(place.space, *place.shard)) : "";
  absl::Status told(status.code(),
                    fmt::format("{}{}: {}{}", shard, host.ToString(), std::string(status.message()),
                                in_doubt ? "; the write may or may not have happened" : ""));
  // A call in doubt must not be retried automatically, so its status keeps no payload that asks the layers
  // above for a retry.
  if (in_doubt) return MarkInDoubt(std::move(told));
  // The payloads are what the layers above go by (backend_api/outcome.h).
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { told.SetPayload(type, payload); });
  return told;
}

// ---- many shards ----

void Fleet::ForEach(ShardSpace space, std::span<const uint32_t> shards,
                    const std::function<void(size_t)>& work) {
  std::map<Host, std::vector<size_t>> by_host;
  const ShardMap& current = map(space);
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardRange* range = current.Find(shards[i]);
    by_host[range != nullptr ? range->master : Host()].push_back(i);
  }
  std::vector<std::function<void()>> tasks;
  tasks.reserve(by_host.size());
  for (const auto& [host, places] : by_host) {
    tasks.emplace_back([&work, &mine = places] {
      for (const size_t place : mine) work(place);
    });
  }
  workers_.RunAll(tasks);
}

absl::Status Fleet::OnAllShards(ShardSpace space,
                                const std::function<absl::Status(const Host&, uint32_t)>& work) {
  std::map<Host, std::vector<uint32_t>> by_host;
  for (const ShardRange& range : map(space).ranges()) {
    for (uint32_t shard = range.first; shard <= range.last; ++shard) by_host[range.master].push_back(shard);
  }
  std::vector<absl::Status> statuses(by_host.size());
  std::vector<std::function<void()>> tasks;
  for (const auto& [host, shards] : by_host) {
    tasks.emplace_back([&work, &host = host, &shards = shards, &status = statuses[tasks.size()]] {
      for (const uint32_t shard : shards) {
        if (status = work(host, shard); !status.ok()) return;
      }
    });
  }
  workers_.RunAll(tasks);
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Fleet::Describe(MetricsSink& sink) {
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    const MetricsSink::Labels labels = {{"space", space == ShardSpace::kId ? "id" : "mod"}};
    const WatcherStats stats = Watcher(space).stats();
    sink.Gauge("kvstore_shard_map_open_shards", "Open shards of the map in force", labels,
               map(space).open_shards());
    sink.Counter("kvstore_shard_map_updates_total", "Maps that came into force", labels,
                 static_cast<double>(stats.updates));
    sink.Counter("kvstore_shard_map_refused_total", "Bad edits of the map that were seen and refused", labels,
                 static_cast<double>(stats.refused));
    sink.Counter("kvstore_shard_map_failures_total", "Reads of the map's source that failed", labels,
                 static_cast<double>(stats.failures));
    sink.Gauge("kvstore_shard_map_current", "Whether the source's map is the one in force", labels,
               stats.problem.ok() && !stats.from_cache ? 1 : 0);
    sink.Gauge("kvstore_shard_map_age_seconds", "Time since the map's source was last read", labels,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - stats.read_at).count());
  }
  std::vector<Pool*> pools;
  {
    const MutexLock lock(pools_mutex_);
    for (const auto& [host, pool] : pools_) pools.push_back(pool);
  }
  for (const Pool* pool : pools) {
    const std::string host = pool->host().ToString();
    const size_t idle = pool->idle();
    const size_t all = std::max(pool->size(), idle);
    sink.Gauge("kvstore_mysql_connections", "Connections to a host", {{"host", host}, {"state", "idle"}},
               static_cast<double>(idle));
    sink.Gauge("kvstore_mysql_connections", "Connections to a host", {{"host", host}, {"state", "busy"}},
               static_cast<double>(all - idle));
    sink.Gauge("kvstore_mysql_waiting", "Calls that wait for a connection", {{"host", host}},
               pool->waiting());
    sink.Gauge("kvstore_mysql_breaker_open", "1: the host fails and is left alone for a while",
               {{"host", host}}, pool->breaker().open() ? 1 : 0);
  }
}

}  // namespace kvstore::mysql
