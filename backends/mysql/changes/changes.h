#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/unit_changes.h"
#include "backends/mysql/changes/host_log.h"
#include "backends/mysql/changes/log_position.h"
#include "backends/mysql/changes/master_asks.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"
#include "base/mutex.h"
#include "kvstore_api/dataset.h"

namespace kvstore::mysql {

/// The changes of datasets of a fleet, by the binary logs of the shards' masters. The logs say what was
/// touched; what that is now is read from the masters.
///
/// **Nothing is skipped.** A place in a log is a GTID position, which the slave has too once it is promoted.
/// All tables of a dataset's name in the log of each master of the map are followed, whether the map has
/// their shard there or not, and a pair that has lost its last shard is read to its end. So a move leaves no
/// gap: what was written before it is in the log of the one pair, and what was written since in that of the
/// other, which is read from its beginning if it is new. A transaction that is in the log but not committed
/// yet, because no slave has acknowledged it, is told later.
///
/// Thread-safe.
class Changes {
 public:
  /// unused_after  The log of a host that nobody has read for so long is not read on, and its connections are
  ///               closed.
  explicit Changes(std::shared_ptr<Fleet> fleet,
                   std::chrono::milliseconds unused_after = HostLog::kUnusedAfter);

  /// FAILED_PRECONDITION, which names the server and its setting, unless all masters of a space log what the
  /// stream needs.
  absl::Status CheckServers(ShardSpace space);

  /// As Backend::StartChanges and Backend::ReadChanges.
  absl::StatusOr<std::string> Start(const DatasetSpec& spec, ChangesFrom from);
  absl::StatusOr<UnitChanges> Read(const DatasetSpec& spec, std::shared_ptr<const Dataset> dataset,
                                   std::string_view position, const ChangeLimits& limits);

  /// How far a position is behind.
  struct Lag {
    /// No change after the position was acknowledged longer ago than this, by the servers' clocks. 0: nothing
    /// was written to the servers since. Writes to other datasets there count as well, so that no log need be
    /// read.
    uint64_t ms = 0;
    /// Some of what is after it is not in the logs any more, or was lost.
    bool is_lost = false;
  };
  /// Measures positions. Costs each master two statements, whatever the number of positions is. A master that
  /// does not answer says nothing of what is lost.
  std::vector<Lag> Measure(ShardSpace space, std::span<const ChangePosition> positions);

  /// Closes the connections of followers who do not come back, and ends the threads of hosts that are in no
  /// map any more and whose logs nobody reads. Called now and then, by any thread; does nothing most of the
  /// time.
  void CloseUnused();
  /// How many hosts have a thread, or connections.
  size_t hosts() const;

  /// Pages that were read from memory, and by connections of their own, of all hosts.
  struct Pages {
    uint64_t shared = 0;
    uint64_t own = 0;
  };
  Pages pages() const;

 private:
  struct PairNow {
    MappedPair pair;
    uint32_t shard = 0;  ///< One of its shards.
    MasterAnswer answer;
  };

  /// Asks all masters of a space, in parallel. A host that hangs is late (MasterAnswer::is_late), unless
  /// it is to be waited for.
  std::vector<PairNow> Ask(ShardSpace space, MasterAsks::Patience patience);
  static MasterAnswer AskOne(Fleet& fleet, const Host& host);
  /// Runs `work` for all pairs in parallel.
  void ForEach(ShardSpace space, std::vector<PairNow>& pairs,
               const std::function<void(PairNow&, size_t)>& work);
  /// Returns the place after which is everything that is not visible yet.
  absl::StatusOr<LogPlace> AwaitNow(ShardSpace space, const PairNow& pair);
  /// Returns the place before the oldest transaction that the master's log has.
  ///
  /// since_ms  When the server began to write the oldest file of its log.
  absl::StatusOr<LogPlace> Oldest(ShardSpace space, const PairNow& pair, uint64_t& since_ms);
  /// Returns the name of the oldest file of the master's log.
  absl::StatusOr<std::string> OldestFile(ShardSpace space, const Host& host);
  /// The beginning of a log.
  struct OldestOfLog {
    std::string file;
    LogVector before;       ///< The place before its oldest transaction.
    uint64_t since_ms = 0;  ///< When the server began to write it.
  };
  /// Returns where the log begins, as long as its oldest file is the same from memory; all empty if the
  /// master does not say.
  OldestOfLog OldestKept(ShardSpace space, const PairNow& pair);
  /// Returns how far transactions are committed at a master.
  absl::StatusOr<FilePlace> Visible(ShardSpace space, const PairNow& pair);
  /// Finds the places of the pairs that there are now in a position. Sets those of `now` in the order of
  /// `pairs`, and appends to both the pairs that have no shards any more.
  absl::Status Resume(ShardSpace space, const ChangePosition& position, std::vector<PairNow>& pairs,
                      ChangePosition& now);
  /// Asks the master of a pair that is in no map any more, whichever of its hosts that is.
  PairNow AskFormer(const ChangePosition::Pair& pair);
  /// Whether the map has a shard at this master, although its tables were put away there by a move.
  bool AwaitsMap(ShardSpace space, const PairNow& pair, uint32_t shard);
  std::shared_ptr<HostLog> LogOf(const PairNow& pair);
  /// Whether a host is the master of shards.
  bool IsMapped(const Host& host) const;
  /// With which the names of hosts in tokens are sealed.
  std::string_view Secret() const { return fleet_->options().password; }

  const std::shared_ptr<Fleet> fleet_;
  const std::chrono::milliseconds unused_after_;
  mutable Mutex mutex_;
  std::map<Host, std::shared_ptr<HostLog>> logs_ ABSL_GUARDED_BY(mutex_);
  std::map<Host, OldestOfLog> oldest_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point tidy_at_ ABSL_GUARDED_BY(mutex_);
  MasterAsks asks_;  // the last member, as its threads use the fleet
};

}  // namespace kvstore::mysql
