#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/unit_changes.h"
#include "backends/mysql/changes/host_log.h"
#include "backends/mysql/changes/log_position.h"
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
/// other, which is read from its beginning if it is new. What was logged and is not committed yet, as a slave
/// has not acknowledged it, is told later.
///
/// Thread-safe.
class Changes {
 public:
  explicit Changes(std::shared_ptr<Fleet> fleet) : fleet_(std::move(fleet)) {}

  /// FAILED_PRECONDITION, which names the server and its setting, unless all masters of a space log what the
  /// stream needs.
  absl::Status CheckServers(Space space);

  /// As Backend::StartChanges and Backend::ReadChanges.
  absl::StatusOr<std::string> Start(const DatasetSpec& spec, ChangesFrom from);
  absl::StatusOr<UnitChanges> Read(const DatasetSpec& spec, std::shared_ptr<const Dataset> dataset,
                                   std::string_view position, const ChangeLimits& limits);

  /// Pages that were read from memory, and by connections of their own, of all hosts.
  struct Pages {
    uint64_t shared = 0;
    uint64_t own = 0;
  };
  Pages pages() const;

 private:
  /// What a master says.
  struct Answer {
    absl::Status status = absl::UnavailableError("was not asked");
    uint64_t now_ms = 0;
    LogVector end;  ///< All that was acknowledged before now_ms is before it.
    uint32_t domain = 0;
  };
  struct PairNow {
    MappedPair pair;
    uint32_t shard = 0;  ///< One of its shards.
    Answer answer;
  };

  /// Asks all masters of a space, in parallel.
  std::vector<PairNow> Ask(Space space);
  Answer AskOne(Space space, const PairNow& pair);
  /// Runs `work` for all pairs in parallel.
  void ForEach(Space space, std::vector<PairNow>& pairs, const std::function<void(PairNow&, size_t)>& work);
  /// Returns the place behind which is everything that is not visible yet.
  absl::StatusOr<LogPlace> AwaitNow(Space space, const PairNow& pair);
  /// Returns the place before the oldest transaction that the master's log has.
  ///
  /// since_ms  When that was logged; 0 if nothing was ever purged.
  absl::StatusOr<LogPlace> Oldest(Space space, const PairNow& pair, uint64_t& since_ms);
  /// Returns how far transactions are committed at a master.
  absl::StatusOr<FilePlace> Visible(Space space, const PairNow& pair);
  /// Finds the places of the pairs that there are now in a position. Sets those of `now` in the order of
  /// `pairs`, and appends to both the pairs that have no shards any more.
  absl::Status Resume(Space space, const ChangePosition& position, std::vector<PairNow>& pairs,
                      ChangePosition& now);
  /// Asks the master of a pair that is in no map any more, whichever of its hosts that is.
  PairNow AskFormer(Space space, const ChangePosition::Pair& pair);
  /// Whether the map has a shard at this master, although its tables were put away there by a move.
  bool AwaitsMap(Space space, const PairNow& pair, uint32_t shard);
  std::shared_ptr<HostLog> LogOf(const PairNow& pair);
  /// With which the names of hosts in tokens are sealed.
  std::string_view Secret() const { return fleet_->options().password; }

  const std::shared_ptr<Fleet> fleet_;
  mutable Mutex mutex_;
  std::map<Host, std::shared_ptr<HostLog>> logs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::mysql
