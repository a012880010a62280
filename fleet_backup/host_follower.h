#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "backup/schedule.h"
#include "base/metrics_sink.h"
#include "base/mutex.h"
#include "catalog/zookeeper_nodes.h"
#include "fleet_backup/binlog_shipper.h"
#include "fleet_backup/host_create.h"
#include "fleet_backup/pair_backups.h"
#include "shardops/fleet_operator.h"

namespace kvstore::fleet_backup {

struct FollowOptions {
  uint64_t every_ms = 0;      ///< From one backup to the next; 0: none are made, only the log is sent.
  size_t keep = 0;            ///< So many backups are kept; 0: none is pruned.
  uint64_t bytes_per_s = 0;   ///< As for CreateHostBackup.
  uint64_t ship_ms = 5'000;   ///< From one look at the binary log to the next.
  uint64_t retry_ms = 5'000;  ///< From a failure to the next attempt.
  /// Called with a line for people: about each backup, each change of the host's role, each failure. May be
  /// null.
  std::function<void(bool is_problem, const std::string& line)> log;
};

/// Makes the backups of a host's pair from time to time and sends its binary log, some seconds behind the
/// slave, in threads of its own. It works while the host is the slave of its pair, and waits while it is the
/// master: run on both hosts of a pair, it goes on after a promotion by itself. Thread-safe.
class HostFollower {
 public:
  /// Starts the threads.
  ///
  /// fleet, open  must outlive it; open opens the store of backups in which those of pairs are.
  /// shared       where the catalog and the maps are, in ZooKeeper.
  HostFollower(shardops::FleetOperator& fleet, const ZooKeeperOptions& shared, Host host, BlobOpener open,
               FollowOptions options);
  /// Stops them; returns when what they are at has ended.
  ~HostFollower();
  /// Tells the threads to stop, and does not wait until they have.
  void Stop();
  HostFollower(const HostFollower&) = delete;
  HostFollower& operator=(const HostFollower&) = delete;

  /// The counts since this follower was made, and its state when it last looked.
  struct Figures {
    BinlogShipper::Figures log;
    uint64_t backups = 0;
    uint64_t failures = 0;       ///< Attempts to send the log that have failed.
    uint64_t sent_until_ms = 0;  ///< All that the slave had logged at this time was sent; 0: not known.
    bool is_slave = false;       ///< Whether the host was the slave of its pair when that was looked at last.
    absl::Status last_error;     ///< The result of the last attempt; OK if it succeeded.
  };
  Figures figures() const;
  void Describe(MetricsSink& sink) const;

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  absl::Status Round();
  /// Looks which host is the slave, and begins or ends to work.
  absl::Status UpdateRole();
  void Begin(const BackedUpPair& pair, std::unique_ptr<BlobStore> blobs);
  void End();
  absl::Status Ship();
  void Failed(const absl::Status& status);
  void Say(bool is_problem, const std::string& line) const {
    if (options_.log) options_.log(is_problem, line);
  }
  /// Returns false if it is to stop.
  bool Sleep(std::chrono::milliseconds time);

  shardops::FleetOperator& fleet_;
  const Host host_;
  const BlobOpener open_;
  const FollowOptions options_;
  const uint64_t started_ms_;
  // These members are used by the thread alone, but for schedule_, which it changes with mutex_ held.
  SharedNodesReader nodes_;
  std::optional<BackedUpPair> pair_;
  Clock::time_point role_known_at_{};
  Clock::time_point chain_known_at_{};
  uint64_t known_backups_ = 0;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<BinlogShipper> shipper_;
  std::shared_ptr<backup::Schedule> schedule_;
  std::atomic<bool> stopping_{false};  // written with mutex_ held, so that no sleeper misses it
  mutable Mutex mutex_;
  std::condition_variable stopped_;
  Figures figures_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace kvstore::fleet_backup
