#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/write_log.h"
#include "backup/log_segment.h"
#include "backup/manifest.h"
#include "base/metrics_sink.h"
#include "base/mutex.h"
#include "blobstore/blob_store.h"

namespace kvstore::backup {

struct ShipperOptions {
  uint64_t ship_ms = 5'000;   ///< From one segment to the next, if anything is written.
  uint64_t mark_ms = 1'000;   ///< From one mark to the next: how exactly a time can be restored.
  uint64_t retry_ms = 5'000;  ///< From a failure to the next attempt.
  /// Called with a line for people, about a chain that begins and about each failure. May be null.
  std::function<void(bool is_problem, const std::string& line)> log;
};

/// Sends the log of a store to where its backups are, some seconds behind the writes, in a thread of its own.
/// If the store's folder is lost, only the writes of these seconds are lost, and a restore can have the store
/// as it was at any time. Nothing is sent while nothing is written.
///
/// It begins with a backup, which a chain of segments follows (log_segment.h). If the log does not have the
/// next write any more, since nothing could be sent for long, or another process sends segments of the same
/// chain, it begins anew with another backup. Thread-safe.
class LogShipper {
 public:
  /// Opens the destination.
  using Opener = std::function<absl::StatusOr<std::unique_ptr<BlobStore>>()>;
  /// Makes a backup of the store now.
  using BaseMaker = std::function<absl::StatusOr<Manifest>(BlobStore& blobs)>;

  /// Starts the thread. All that the functions use must outlive this.
  LogShipper(std::unique_ptr<WriteLog> log, Opener open, BaseMaker make_base, ShipperOptions options);
  /// Stops it; returns when what the thread is at has ended.
  ~LogShipper();
  /// Tells the thread to send what is left and to stop, and does not wait until it has.
  void Stop();
  LogShipper(const LogShipper&) = delete;
  LogShipper& operator=(const LogShipper&) = delete;

  /// The counts since this shipper was made, and the state of the log that it has sent.
  struct Figures {
    uint64_t segments = 0;
    uint64_t sent_bytes = 0;
    uint64_t failures = 0;
    uint64_t chains = 0;
    uint64_t shipped_until_ms = 0;  ///< All that was written before this time was sent; 0: nothing yet.
    absl::Status last_error;        ///< The result of the last attempt to send; OK if it succeeded.
  };
  Figures figures() const;
  void Describe(MetricsSink& sink) const;

 private:
  using Clock = std::chrono::steady_clock;

  /// A schema that is in force from a mark on; it was read after that mark.
  struct NewSchema {
    LogMark mark;
    LogSchema schema;
  };
  /// A segment that is to be put. Its writes are in its bytes alone.
  struct Unsent {
    LogSegment segment;
    std::string bytes;
    bool tells_schema = false;  // the first one of Chain::schemas
  };
  /// The chain that is being sent. Used by the thread alone.
  struct Chain {
    std::string id;
    uint64_t number = 1;            // of the next segment
    std::string previous;           // the checksum of the last one
    uint64_t shipped = 0;           // the last change that was sent
    LogSchema schema;               // that was sent last
    std::deque<NewSchema> schemas;  // those that came since, in order
    std::vector<LogMark> marks;     // the first one was sent
    std::optional<Unsent> unsent;   // may be there all the same, if a put has failed
    Clock::time_point progressed;
  };

  void Run();
  /// Notes the time, and sends what is due. An error may be tried again.
  absl::Status Round(bool is_last);
  absl::Status BeginChain();
  /// Sends what there is, in as many segments as it takes.
  absl::Status Ship();
  /// Makes the next segment, Chain::unsent; none if there is nothing that can be sent yet.
  absl::Status MakeSegment();
  /// Puts Chain::unsent. ALREADY_EXISTS if another process has put another segment in its place.
  absl::Status PutSegment();
  void Mark();
  /// Notes the schema if it is not the one that was noted last.
  absl::Status NoteSchema();
  void Failed(const absl::Status& status);
  void Say(bool is_problem, const std::string& line) const {
    if (options_.log) options_.log(is_problem, line);
  }
  /// Returns false if it is to stop.
  bool Sleep(std::chrono::milliseconds time);

  const std::unique_ptr<WriteLog> log_;
  const Opener open_;
  const BaseMaker make_base_;
  const ShipperOptions options_;
  const uint64_t started_ms_;
  std::unique_ptr<BlobStore> blobs_;
  std::optional<Chain> chain_;
  Clock::time_point shipped_at_{};
  std::atomic<bool> stopping_{false};  // written with mutex_ held, so that no sleeper misses it
  mutable Mutex mutex_;
  std::condition_variable stopped_;
  Figures figures_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace kvstore::backup
