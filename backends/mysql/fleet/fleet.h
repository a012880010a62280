#pragma once

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/end_of_wait.h"
#include "backend_api/outcome.h"
#include "backends/mysql/driver/errors.h"
#include "backends/mysql/driver/pool.h"
#include "backends/mysql/driver/tables.h"
#include "backends/mysql/fleet/spread.h"
#include "backends/mysql/fleet/table_maker.h"
#include "backends/mysql/fleet/workers.h"
#include "base/metrics_sink.h"
#include "base/mutex.h"
#include "kvstore_api/call_scope.h"
#include "shardmap/watcher.h"
#include "shardmap/weights.h"

namespace kvstore::mysql {

/// Where the two shard maps come from.
struct MapSources {
  std::unique_ptr<MapSource> id;
  std::unique_ptr<MapSource> mod;
  std::unique_ptr<MapSource> weights;  ///< Null: MySqlOptions has the weights.
  std::filesystem::path id_cache;      ///< The file for the last good map; empty: it is not stored.
  std::filesystem::path mod_cache;     ///< Likewise.
};

/// Whether work is retried when its outcome is unknown, because the connection was lost while it was being
/// committed. Work that was certainly not committed is retried in any case.
enum class Repeat : uint8_t {
  /// It is retried. For reads, and for writes that leave the data right whatever other clients have done
  /// between the two attempts. A put is none of these: in between, a client may have deleted what the first
  /// attempt put, and been acknowledged.
  kAlways,
  /// It is not retried: the call fails as in doubt (backend_api/outcome.h).
  kIfNotCommitted,
  /// It is retried, and the work itself first checks what became of its attempt before. If it cannot tell, it
  /// fails with a status that is marked as in doubt.
  kAfterCheck
};

/// The place that messages name in addition to the host: a shard, if the work is for one.
struct Place {
  ShardSpace space = ShardSpace::kId;
  std::optional<uint32_t> shard;
};

/// All hosts of the shard maps: finds the master of a shard, and runs work there, with retries where these
/// are safe. Thread-safe.
class Fleet {
 public:
  /// Reads the shard maps and begins to watch them. Hosts are connected to when they are needed.
  ///
  /// tables  which tables were made on first use; null: there are no datasets of which that is so.
  static absl::StatusOr<std::unique_ptr<Fleet>> Start(MapSources sources, const MySqlOptions& options,
                                                      std::unique_ptr<TableRecords> tables = nullptr);

  const MySqlOptions& options() const { return options_; }
  /// The map in force; valid as long as the fleet. One load, no lock.
  const ShardMap& map(ShardSpace space) const { return Watcher(space).map(); }
  const ShardMapWatcher& Watcher(ShardSpace space) const {
    return space == ShardSpace::kId ? *id_watcher_ : *mod_watcher_;
  }
  /// Chooses shards for objects that are created without naming one.
  const Spreads& spreads() const { return spreads_; }
  uint32_t mod_shards() const { return map(ShardSpace::kMod).open_shards(); }
  /// Makes tables where they are needed first; null if no dataset has such tables.
  TableMaker* table_maker() const { return table_maker_.get(); }

  /// Runs `work`, which takes a Connection& and returns a Status or StatusOr, on the shard's master. Retries
  /// may run it more than once. The connector's exceptions that it throws become errors, which name shard and
  /// host:
  ///
  /// FAILED_PRECONDITION  the shard is not open, or lacks the table.
  /// UNAVAILABLE          the host fails. If a write may have happened, the message says so.
  /// DEADLINE_EXCEEDED    no answer in time; a write may have happened, and then the message says so.
  /// RESOURCE_EXHAUSTED   no connection became free, or the server is full.
  ///
  /// Errors of a write that may have happened are marked as in doubt (backend_api/outcome.h).
  template <typename Work>
  auto Run(ShardSpace space, uint32_t shard, Repeat repeat, Work&& work)
      -> std::invoke_result_t<Work, Connection&>;
  /// Does the same on a host that the caller has looked up; `place` is for messages.
  template <typename Work>
  auto RunOn(const Host& host, const Place& place, Repeat repeat, Work&& work)
      -> std::invoke_result_t<Work, Connection&>;

  /// Calls `work(i)` for each i < shards.size(), one after another for shards of one host, hosts in parallel.
  void ForEach(ShardSpace space, std::span<const uint32_t> shards, const std::function<void(size_t)>& work);
  /// Calls `work` for all open shards of a space, as ForEach does. A failure ends the work on its host; one
  /// of the failures is returned.
  absl::Status OnAllShards(ShardSpace space, const std::function<absl::Status(const Host&, uint32_t)>& work);

  /// Reports metrics of the shard maps, and of each host's connections and breaker.
  void Describe(MetricsSink& sink);

  /// Returns the pool of a host, made at its first use; valid as long as the fleet.
  Pool& PoolOf(const Host& host);
  /// Returns the same status with shard and host in front of its message.
  ///
  /// in_doubt  whether this attempt or one before may have written: the message says so, and the status is
  ///           marked.
  static absl::Status WithPlace(const Place& place, const Host& host, const absl::Status& status,
                                bool in_doubt);

 private:
  /// Says what to do after an attempt that failed.
  struct Verdict {
    bool again = false;
    bool in_doubt = false;  // whether it is unknown if this attempt's write happened
    absl::Status status;    // the error for the caller, unless `again`
  };

  /// The pools of a map's masters, which calls find without a lock.
  struct Routes {
    const ShardMap* map = nullptr;
    std::vector<Pool*> pools;  // one for each range
  };

  Fleet(const MySqlOptions& options, const std::filesystem::path& spreads,
        std::unique_ptr<TableRecords> tables);
  /// Returns the pool for a range of `map`, which was in force a moment ago.
  Pool& PoolOf(ShardSpace space, const ShardMap& map, const ShardRange& range);
  /// Makes the routes of `map`, and puts them in force if the map is.
  const Routes& MakeRoutes(ShardSpace space, const ShardMap& map);
  /// Closes the pools of hosts that are in no map.
  void CloseUnusedPools() ABSL_EXCLUSIVE_LOCKS_REQUIRED(pools_mutex_);
  template <typename Work>
  auto RunIn(Pool& pool, const Place& place, Repeat repeat, Work&& work)
      -> std::invoke_result_t<Work, Connection&>;
  /// Decides what to do after an attempt that threw `error`, which took `elapsed`. Closes the lease's
  /// connection if it is unusable.
  Verdict ClassifyFailure(const sql::SQLException& error, Lease& lease, Repeat repeat, int attempt,
                          Connection::Clock::duration elapsed) const;
  /// Decides the same after a statement that lacks its table.
  Verdict HandleMissingTable(const sql::SQLException& error, Lease& lease, int attempt) const;
  /// Whether the outcome of work is known now that was retried while it was in doubt.
  static bool IsOutcomeKnown(Repeat repeat, const absl::Status& status) {
    return status.ok() || (repeat == Repeat::kAfterCheck && !IsInDoubt(status));
  }
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  const MySqlOptions options_;
  const std::unique_ptr<TableMaker> table_maker_;
  Spreads spreads_;
  std::unique_ptr<ShardMapWatcher> id_watcher_;
  std::unique_ptr<ShardMapWatcher> mod_watcher_;
  std::unique_ptr<WeightsWatcher> weights_;
  std::array<std::atomic<const Routes*>, 2> routes_{};  // by space; of the newest map that a call has used
  ConnectionBudget budget_;                             // outlives the pools
  Mutex pools_mutex_;
  std::map<Host, Pool*> pools_ ABSL_GUARDED_BY(pools_mutex_);
  // Like maps, routes and pools are never freed: calls that began before a map changed continue with them. A
  // closed pool has no idle connections.
  std::vector<std::unique_ptr<const Routes>> all_routes_ ABSL_GUARDED_BY(pools_mutex_);
  std::vector<std::unique_ptr<Pool>> all_pools_ ABSL_GUARDED_BY(pools_mutex_);
  Workers workers_;  // the last member, so that its threads end first
};

// ---- implementation ----

template <typename Work>
auto Fleet::RunIn(Pool& pool, const Place& place, Repeat repeat, Work&& work)
    -> std::invoke_result_t<Work, Connection&> {
  bool in_doubt = false;
  std::string failed;  // why the attempt before is repeated
  for (int attempt = 1;; ++attempt) {
    if (auto over = CheckCall(); !over.ok())
      return WithPlace(place, pool.host(), EndOfWait(over, failed), in_doubt);
    auto lease = pool.Acquire();
    if (!lease.ok()) return WithPlace(place, pool.host(), lease.status(), in_doubt);
    const auto begin = Connection::Clock::now();
    (*lease)->ForgetTable();
    try {
      auto result = work(**lease);
      if (!in_doubt || IsOutcomeKnown(repeat, StatusOf(result))) return result;
      return WithPlace(place, pool.host(), StatusOf(result), in_doubt);
    } catch (const sql::SQLException& error) {
      const Verdict verdict =
          ClassifyFailure(error, *lease, repeat, attempt, Connection::Clock::now() - begin);
      in_doubt = in_doubt || verdict.in_doubt;
      if (!verdict.again) return WithPlace(place, pool.host(), verdict.status, in_doubt);
      failed = std::string(ToStatus(error).message());
    }
  }
}

template <typename Work>
auto Fleet::RunOn(const Host& host, const Place& place, Repeat repeat, Work&& work)
    -> std::invoke_result_t<Work, Connection&> {
  return RunIn(PoolOf(host), place, repeat, std::forward<Work>(work));
}

template <typename Work>
auto Fleet::Run(ShardSpace space, uint32_t shard, Repeat repeat, Work&& work)
    -> std::invoke_result_t<Work, Connection&> {
  const ShardMap& current = map(space);
  const ShardRange* range = current.Find(shard);
  if (range == nullptr) {
    return absl::FailedPreconditionError(fmt::format("shard {}: is not open", DatabaseName(space, shard)));
  }
  return RunIn(PoolOf(space, current, *range), Place{space, shard}, repeat, std::forward<Work>(work));
}

}  // namespace kvstore::mysql
