#pragma once

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/errors.h"
#include "backends/mysql/pool.h"
#include "backends/mysql/spread.h"
#include "backends/mysql/tables.h"
#include "backends/mysql/workers.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/in_doubt.h"
#include "kvstore_api/metrics_sink.h"
#include "shardmap/watcher.h"
#include "shardmap/weights.h"

namespace kvstore::mysql {

/// Where the two shard maps come from, and where the last good ones are kept (may be empty).
struct MapSources {
  std::unique_ptr<MapSource> id;
  std::unique_ptr<MapSource> mod;
  std::unique_ptr<MapSource> weights;  ///< Null: MySqlOptions has them.
  std::filesystem::path id_cache;
  std::filesystem::path mod_cache;
};

/// Whether work may be done again whose outcome is unknown, because the connection was lost while it was
/// being committed. Work that was surely not committed is repeated in any case.
enum class Repeat : uint8_t {
  /// Reads; and writes after which the data are as they should be whatever others have done in between. A
  /// put,
  /// say, is not: between the two somebody may have deleted what the first one put, and been told so.
  kAlways,
  /// The caller is told.
  kIfNotCommitted,
  /// The work itself looks first for what it did before. If it cannot tell, it fails with a status that is
  /// marked as in doubt (kvstore_api/in_doubt.h).
  kAfterALook
};

/// What messages name beside the host: a shard, if there is one.
struct Place {
  Space space = Space::kId;
  std::optional<uint32_t> shard;
};

/// All hosts of the shard maps: finds a shard's master, and runs work there, with retries where they are
/// safe. Thread-safe.
class Fleet {
 public:
  static absl::StatusOr<std::unique_ptr<Fleet>> Start(MapSources sources, const MySqlOptions& options);

  const MySqlOptions& options() const { return options_; }
  const ShardMap& map(Space space) const { return Watcher(space).map(); }
  const ShardMapWatcher& Watcher(Space space) const {
    return space == Space::kId ? *id_watcher_ : *mod_watcher_;
  }
  /// Where objects go that name no shard.
  const Spreads& spreads() const { return spreads_; }
  uint32_t mod_shards() const { return map(Space::kMod).open_shards(); }

  /// Runs `work`, which takes a Connection& and returns a Status or StatusOr, on the shard's master. It may
  /// be run more than once. What it throws of the connector is caught and told, with shard and host:
  ///
  /// FAILED_PRECONDITION  the shard is not open, or lacks the table.
  /// UNAVAILABLE          the host fails. If a write may have happened, the message says so.
  /// DEADLINE_EXCEEDED    no answer in time; a write may have happened.
  /// RESOURCE_EXHAUSTED   no connection became free, or the server is full.
  template <typename Work>
  auto Run(Space space, uint32_t shard, Repeat repeat, Work&& work)
      -> std::invoke_result_t<Work, Connection&>;
  /// The same on a host that the caller has looked up; `place` is for messages.
  template <typename Work>
  auto RunOn(const Host& host, const Place& place, Repeat repeat, Work&& work)
      -> std::invoke_result_t<Work, Connection&>;

  /// Calls `work(i)` for each i < shards.size(), one after another for shards of one host, hosts in parallel.
  void ForEach(Space space, std::span<const uint32_t> shards, const std::function<void(size_t)>& work);
  /// Calls `work` for all open shards of a space, as ForEach does. The first failure of a host ends its part;
  /// one of them is returned.
  absl::Status OnAllShards(Space space, const std::function<absl::Status(const Host&, uint32_t)>& work);

  /// Connections and breakers of each host, and the shard maps.
  void Describe(MetricsSink& sink);

  /// The pool of a host, made at its first use; valid as long as this.
  Pool& PoolOf(const Host& host);

 private:
  /// What to do after a failure.
  struct Verdict {
    bool again = false;
    bool in_doubt = false;  // whether this attempt's write happened
    absl::Status status;    // if it is not to be tried again
  };

  /// The pools of a map's masters, found without a lock.
  struct Routes {
    const ShardMap* map = nullptr;
    std::vector<Pool*> pools;  // of each range
  };

  Fleet(const MySqlOptions& options, const std::filesystem::path& spreads);
  /// The pool of a range of the map in force.
  Pool& PoolOf(Space space, const ShardMap& map, const ShardRange& range);
  const Routes& MakeRoutes(Space space, const ShardMap& map);
  /// Closes the pools of hosts that are in no map. Under pools_mutex_.
  void CloseUnusedPools();
  template <typename Work>
  auto RunIn(Pool& pool, const Place& place, Repeat repeat, Work&& work)
      -> std::invoke_result_t<Work, Connection&>;
  Verdict Judge(const sql::SQLException& error, Lease& lease, Repeat repeat, int attempt,
                Connection::Clock::duration elapsed) const;
  /// Whether the outcome of work that was repeated in doubt is known now.
  static bool IsSettled(Repeat repeat, const absl::Status& status) {
    return status.ok() || (repeat == Repeat::kAfterALook && !IsInDoubt(status));
  }
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }
  /// The same status, its message preceded by shard and host.
  ///
  /// in_doubt  an attempt before may have written: the message says so.
  static absl::Status At(const Place& place, const Host& host, const absl::Status& status, bool in_doubt);

  const MySqlOptions options_;
  Spreads spreads_;
  std::unique_ptr<ShardMapWatcher> id_watcher_;
  std::unique_ptr<ShardMapWatcher> mod_watcher_;
  std::unique_ptr<WeightsWatcher> weights_;
  std::array<std::atomic<const Routes*>, 2> routes_{};  // by space; of the map that was looked into last
  std::mutex pools_mutex_;                              // guards what follows
  std::map<Host, Pool*> pools_;
  // As maps are, routes and pools are kept: calls that began before a map changed go on with them. A pool
  // that is closed has no connections.
  std::vector<std::unique_ptr<const Routes>> all_routes_;
  std::vector<std::unique_ptr<Pool>> all_pools_;
  Workers workers_;  // last, so that they end first
};

// ---- implementation ----

template <typename Work>
auto Fleet::RunIn(Pool& pool, const Place& place, Repeat repeat, Work&& work)
    -> std::invoke_result_t<Work, Connection&> {
  bool in_doubt = false;
  for (int attempt = 1;; ++attempt) {
    if (auto status = CheckCall(); !status.ok()) return At(place, pool.host(), status, in_doubt);
    auto lease = pool.Acquire();
    if (!lease.ok()) return At(place, pool.host(), lease.status(), in_doubt);
    const auto begin = Connection::Clock::now();
    (*lease)->ForgetTable();
    try {
      auto result = work(**lease);
      if (!in_doubt || IsSettled(repeat, StatusOf(result))) return result;
      return At(place, pool.host(), StatusOf(result), in_doubt);
    } catch (const sql::SQLException& error) {
      const Verdict verdict = Judge(error, *lease, repeat, attempt, Connection::Clock::now() - begin);
      in_doubt = in_doubt || verdict.in_doubt;
      if (!verdict.again) return At(place, pool.host(), verdict.status, in_doubt);
    }
  }
}

template <typename Work>
auto Fleet::RunOn(const Host& host, const Place& place, Repeat repeat, Work&& work)
    -> std::invoke_result_t<Work, Connection&> {
  return RunIn(PoolOf(host), place, repeat, std::forward<Work>(work));
}

template <typename Work>
auto Fleet::Run(Space space, uint32_t shard, Repeat repeat, Work&& work)
    -> std::invoke_result_t<Work, Connection&> {
  const ShardMap& current = map(space);
  const ShardRange* range = current.Find(shard);
  if (range == nullptr) {
    return absl::FailedPreconditionError(fmt::format("shard {}: is not open", DatabaseName(space, shard)));
  }
  return RunIn(PoolOf(space, current, *range), Place{space, shard}, repeat, std::forward<Work>(work));
}

}  // namespace kvstore::mysql
