#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "reports/reports.h"

namespace kvstore::cli {

/// Writes batches on threads of its own, so that the next one can be read meanwhile. After a batch has
/// failed, none is begun any more. Externally synchronised.
class BatchWriter {
 public:
  struct Task {
    reports::Batch batch;
    std::string id;     ///< The ID, as WriteBatchOptions::batch has it.
    std::string place;  ///< The place of its first point, for messages: "clicks.csv line 2".
  };

  /// reports    must outlive this.
  /// add        as WriteBatchOptions::add.
  /// in_flight  how many batches are written at once, at least 1. With one they are written in the order in
  ///            which they were given; with more, of two batches any may be the later one.
  BatchWriter(reports::Reports& reports, bool add, size_t in_flight);
  /// Waits for the batches that are in flight.
  ~BatchWriter();
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  /// Takes a batch; waits while `in_flight` others are not written. Returns the error of the first batch, by
  /// the order in which they were given, that has failed so far; its message names the place.
  [[nodiscard]] absl::Status Write(Task task);
  /// Waits until all are written. Returns the same.
  [[nodiscard]] absl::Status Finish();

 private:
  void Work();

  reports::Reports& reports_;
  const bool add_;
  Mutex mutex_;
  std::condition_variable changed_;
  struct Numbered {
    uint64_t number = 0;
    Task task;
  };
  std::deque<Numbered> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t in_work_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t given_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t failed_number_ ABSL_GUARDED_BY(mutex_) = 0;  // only if failed_ is an error
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // as many as batches may be in flight
};

}  // namespace kvstore::cli
