#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "base/metrics_sink.h"
#include "base/mutex.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::reports {

struct MaintenanceOptions {
  std::string dataset = "reports";  ///< A dataset of shape rows; it need not exist.
  /// From the end of a round to the start of the next, and at most from the start of the process to the first
  /// round. At least 1.
  uint64_t interval_ms = 300'000;
  uint32_t share = 10;  ///< Percent of its time for which the thread works, 1..100. It sleeps for the rest.
  /// A row with fewer chunks is left as it is, so that a large chunk is not written again for each small one.
  size_t min_chunks = 8;
  /// Roll-ups are made of rows that were not written to for so long; what is made of others is soon out of
  /// date.
  uint64_t quiet_ms = 600'000;
  /// Called with a line for people when reports fail for another reason than before. May be null.
  std::function<void(const std::string&)> log;
};

/// Compacts the reports of a dataset, removes what is past their retention and makes their roll-ups, in a
/// thread of its own: one row at a time, with pauses. Rows that were not written to since the last round are
/// not read. Does nothing as long as there is no such dataset, and never makes one.
///
/// Several processes may do this for one dataset: each row is written by one of them, the others have worked
/// in vain. Calls wait for a dataset that migrates, as all calls do; what fails is tried again in the next
/// round. Thread-safe.
class Maintenance {
 public:
  /// Starts the thread. The store must outlive this.
  Maintenance(KVStore& store, MaintenanceOptions options);
  /// Stops it; returns when the call to the store that is made just now has ended.
  ~Maintenance();
  /// Tells the thread to stop, and does not wait until it has.
  void Stop();
  Maintenance(const Maintenance&) = delete;
  Maintenance& operator=(const Maintenance&) = delete;

  /// The work and the errors since this was made.
  struct Figures {
    uint64_t rounds = 0;   ///< Rounds that were completed.
    uint64_t reports = 0;  ///< Reports that the last round found.
    uint64_t chunks_merged = 0;
    uint64_t rows_expired = 0;
    uint64_t rollups_made = 0;   ///< Rows whose roll-ups were made.
    uint64_t errors = 0;         ///< Reports that failed, each time.
    std::string failed_report;   ///< The one that failed last; empty: the list of reports could not be read.
    absl::Status last_error;     ///< OK if nothing has failed yet.
    uint64_t last_error_ms = 0;  ///< When that was, ms since 1970.
  };
  Figures figures() const;
  /// Reports the figures; nothing as long as there are no reports.
  void Describe(MetricsSink& sink) const;

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  /// Maintains all reports once. An error if it is to stop, or there is no list of them.
  absl::Status Round();
  absl::Status Maintain(const std::string& report);
  void Failed(const std::string& report, const absl::Status& status);
  /// Sleeps as long as the share demands for the time that has passed since it last slept.
  absl::Status Pause();
  /// CANCELLED if it is to stop.
  absl::Status Sleep(Clock::duration time);

  KVStore& store_;
  const MaintenanceOptions options_;
  std::atomic<bool> stopping_{false};  // written with mutex_ held, so that no sleeper misses it
  mutable Mutex mutex_;
  std::condition_variable stopped_;
  Figures figures_ ABSL_GUARDED_BY(mutex_);

  // Only thread_ uses the next three members.
  Clock::time_point rested_{};
  /// When the last round that went through a report began, ms since 1970, by the report's ID.
  std::map<uint32_t, uint64_t> begun_ms_;
  std::map<uint32_t, uint64_t> begun_before_ms_;

  std::thread thread_;  // the last member: it uses all others
};

}  // namespace kvstore::reports
