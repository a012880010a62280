#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/changes/log_position.h"
#include "backends/mysql/changes/log_reader.h"
#include "backends/mysql/changes/log_session.h"
#include "backends/mysql/changes/page_builder.h"
#include "base/mutex.h"
#include "kvstore_api/mysql_options.h"

namespace kvstore::mysql {

/// A page of the units that a host's log has after a place.
struct LogPage {
  std::vector<LoggedUnit> units;
  LogPlace next;        ///< Where to go on.
  bool at_end = false;  ///< Everything that was visible when it was asked for is before `next`.
};

/// The binary log of one host, for all followers of this process. One thread reads its end, and keeps the
/// last transactions in memory (kMaxBytes); followers that are there cost the server nothing more. A follower
/// that is further behind reads the log over a connection of its own, as fast as it likes. So a slow follower
/// holds back itself only, and nothing grows. A thread whose end nobody has read for a minute pauses.
/// Thread-safe.
class HostLog {
 public:
  /// How many bytes of transactions are kept, about.
  static constexpr size_t kMaxBytes = size_t{16} << 20;
  /// A transaction that touches more is not kept.
  static constexpr size_t kMaxTransactionBytes = size_t{4} << 20;
  /// How many connections of those that are behind stay open for their next page.
  static constexpr size_t kMaxParked = 8;

  /// After so long without a reader, the thread pauses.
  static constexpr std::chrono::seconds kUnusedAfter{60};

  HostLog(Host host, const MySqlOptions& login, std::chrono::milliseconds unused_after = kUnusedAfter)
      : host_(std::move(host)), login_(login), unused_after_(unused_after) {}
  ~HostLog();
  HostLog(const HostLog&) = delete;
  HostLog& operator=(const HostLog&) = delete;

  /// Somebody follows, and is at the end: from now on the thread reads what comes. Where the system gives no
  /// thread, followers go on to read by connections of their own.
  ///
  /// end  what the host's log had a moment ago (@@gtid_binlog_pos), or less.
  void Watch(const LogVector& end);

  /// Reads what is after a place.
  ///
  /// wanted   is read if the log has it: what it had a moment ago. A thread that is not so far yet is waited
  ///          for, but not for long.
  /// visible  Transactions after this place of the host's files may not be committed yet, and come later.
  ///
  /// Transactions that came only a moment ago are left for the next page, unless they are many: each page
  /// costs the servers a statement for each shard, and writers would feel it.
  ///
  /// Errors are those of LogReader, LogSession and PageBuilder.
  absl::StatusOr<LogPage> Read(const DatasetTables& tables, const LogPlace& from, size_t limit,
                               const LogVector& wanted, const FilePlace& visible);

  /// Closes the connections that nobody has gone on with for a while.
  void CloseParked();
  /// Whether somebody has read the log a moment ago.
  bool IsInUse() const;

  /// How many transactions are kept; for tests and metrics.
  size_t kept() const;
  /// How many pages were read from memory, and by a connection of their own.
  uint64_t shared_pages() const { return shared_pages_; }
  uint64_t own_pages() const { return own_pages_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// A transaction that touched datasets.
  struct Kept {
    LogGtid gtid;
    uint64_t at_ms = 0;
    FilePlace end;
    bool standalone = false;
    struct Rows {
      std::shared_ptr<const LoggedTable> table;
      std::vector<TouchedRow> rows;
    };
    std::vector<Rows> rows;
    std::vector<LoggedStatement> statements;
    size_t bytes = 0;
    Clock::time_point arrived;
  };
  /// A connection of somebody who is behind.
  struct Behind {
    std::unique_ptr<LogSession> session;
    std::unique_ptr<LogReader> reader;
    ShardSpace space = ShardSpace::kId;
    std::string name;
    LogPlace place;          // where it is
    LogItem left;            // rows that did not fit on the page
    size_t left_at = 0;      // of them
    bool in_middle = false;  // `place` is in the middle of a transaction, of which the rest comes next
    Clock::time_point parked;
  };

  void Run();
  /// Notes that somebody is interested in the end of the log.
  void Touch();
  /// Reads on until the session fails or nobody is interested.
  absl::Status ReadOn(LogSession& session);
  void Keep(Kept transaction, bool too_large, const LogVector& done);
  /// Whether the thread has, or is about to read, what is after a place. It has not if the place is after
  /// transactions that this log does not have: a host that was promoted may lack what was told.
  bool IsKept(const LogVector& place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Returns the first transactions that are kept after a place, enough for a page.
  std::vector<std::shared_ptr<const Kept>> KeptBehind(const DatasetTables& tables, const LogPlace& from,
                                                      size_t limit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::StatusOr<LogPage> MakePage(const DatasetTables& tables, const LogPlace& from, size_t limit,
                                          const FilePlace& visible,
                                          std::span<const std::shared_ptr<const Kept>> transactions);
  absl::StatusOr<LogPage> ReadBehind(const DatasetTables& tables, const LogPlace& from, size_t limit,
                                     const FilePlace& visible);
  absl::StatusOr<std::unique_ptr<Behind>> BehindAt(const DatasetTables& tables, const LogPlace& from);
  void Park(std::unique_ptr<Behind> behind);

  const Host host_;
  const MySqlOptions login_;
  const std::chrono::milliseconds unused_after_;
  std::atomic<uint64_t> shared_pages_{0};
  std::atomic<uint64_t> own_pages_{0};
  std::atomic<Clock::rep> used_at_{Clock::now().time_since_epoch().count()};

  mutable Mutex mutex_;
  std::condition_variable changed_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;  // the thread
  bool told_of_no_thread_ ABSL_GUARDED_BY(mutex_) = false;
  // The log does not have what is after end_ any more: the thread waits for a follower that is at its end.
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  LogSession* session_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the thread
  LogVector base_ ABSL_GUARDED_BY(mutex_);                 // all that is after it, up to end_, is in kept_
  LogVector end_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<const Kept>> kept_ ABSL_GUARDED_BY(mutex_);
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::unique_ptr<Behind>> parked_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // the last member, as it uses the others
};

}  // namespace kvstore::mysql
