#pragma once

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "client/channels.h"
#include "client/multiplexed_stream.h"

namespace kvstore::client {

/// A stream for each connection, which many threads share when they call at the same time. A thread alone is
/// served faster by calls of their own. Thread-safe.
class StreamPool {
 public:
  /// Both must outlive the pool.
  StreamPool(const Channels& channels, const MultiplexedStream::Metadata& metadata)
      : channels_(channels), metadata_(metadata), streams_(channels.count()) {}

  /// Counts a call as long as it lives, and says whether the call is to go over a stream.
  class ActiveCall {
   public:
    explicit ActiveCall(StreamPool& streams);
    ~ActiveCall() { streams_.calls_.fetch_sub(1, std::memory_order_relaxed); }
    ActiveCall(const ActiveCall&) = delete;
    ActiveCall& operator=(const ActiveCall&) = delete;
    bool streamed() const { return streamed_; }

   private:
    StreamPool& streams_;
    bool streamed_ = false;
  };

  /// Returns the stream of this thread's connection; opens one if there is none, or it takes no more calls.
  std::shared_ptr<MultiplexedStream> Get();
  /// The server does not have the method Calls: no call is streamed until ClearUnsupported.
  void MarkUnsupported() { unsupported_.store(true, std::memory_order_relaxed); }
  /// A call was lost. Another server, with a newer version, may listen on the address by now, so streams are
  /// tried again.
  void ClearUnsupported() {
    if (unsupported_.load(std::memory_order_relaxed)) unsupported_.store(false, std::memory_order_relaxed);
  }

 private:
  struct Slot {
    Mutex mutex;
    std::shared_ptr<MultiplexedStream> stream ABSL_GUARDED_BY(mutex);
  };

  const Channels& channels_;
  const MultiplexedStream::Metadata& metadata_;
  std::vector<Slot> streams_;
  std::atomic<bool> unsupported_{false};
  alignas(64) std::atomic<int> calls_{0};
  std::atomic<bool> busy_{false};
};

}  // namespace kvstore::client
