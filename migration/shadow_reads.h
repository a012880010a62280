#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "migration/copier.h"
#include "router/read_taps.h"

/// Shadow reads: units that callers have just read are read on both sides and compared, while the copy is
/// kept current. That finds what a comparison of everything cannot see, because it was made before.
namespace kvstore::migration {

/// The units that wait to be compared. Bounded: units are dropped rather than a caller held up. Thread-safe.
class ShadowQueue : public ReadTap {
 public:
  /// At most this many reads wait.
  static constexpr size_t kMost = 1000;

  void Offer(std::vector<std::string> units) override;
  /// Takes what has been offered, without duplicates, and about `most` units at a time; waits until there is
  /// something, or the queue is closed.
  std::vector<std::string> Take(size_t most);
  /// Makes Take return at once, with nothing.
  void Close();
  uint64_t TakeDropped() { return dropped_.exchange(0); }
  /// Counts units that were taken, and could not be compared.
  void CountDropped(uint64_t units) { dropped_ += units; }

 private:
  // std::mutex and not Mutex, which has no attempt that fails at once.
  std::mutex mutex_;
  std::condition_variable offered_;
  std::vector<std::vector<std::string>> reads_;  // guarded by mutex_
  bool closed_ = false;                          // guarded by mutex_
  std::atomic<uint64_t> dropped_{0};
};

/// Compares what waits in a queue, in a thread of its own which rests as long as it works, until it is
/// destroyed. The limits of the thread that makes it (CallScope) hold for it, too.
class ShadowReads {
 public:
  /// The results since Take was called last.
  struct Counts {
    uint64_t compared = 0;  ///< Units that were read on both sides.
    uint64_t dropped =
        0;  ///< Reads and units that were not compared, for want of time or because a side failed.
    /// Keys of units that differed although no write to them was in flight, each only the first time.
    std::vector<std::string> different;
  };

  /// Opens a tap of the dataset. Its arguments must outlive it.
  ///
  /// share  of ReadTaps::kAll.
  ShadowReads(ReadTaps& taps, std::string dataset, uint32_t share, Copier& copier);
  ~ShadowReads();
  ShadowReads(const ShadowReads&) = delete;
  ShadowReads& operator=(const ShadowReads&) = delete;

  Counts Take();
  /// Tells of no more reads, and waits until none is being compared.
  void Stop();

 private:
  void Run();
  /// Compares units, and counts those that differ. Returns why they could not be compared.
  absl::Status Compare(const std::vector<std::string>& units);

  ReadTaps& taps_;
  const std::string dataset_;
  Copier& copier_;
  const std::shared_ptr<ShadowQueue> queue_ = std::make_shared<ShadowQueue>();
  size_t group_ = 10;            // how many units are read together; used by thread_ only
  std::set<std::string> known_;  // units that were found to differ; used by thread_ only
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  std::condition_variable stopped_;
  std::thread thread_;
};

}  // namespace kvstore::migration
