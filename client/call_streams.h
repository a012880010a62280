#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "client/call_stream.h"
#include "client/channels.h"

namespace kvstore::client {

/// A stream for each connection, opened when many threads call at once: one thread alone is served quicker by
/// calls of their own. Thread-safe.
class CallStreams {
 public:
  /// Both must outlive it.
  CallStreams(const Channels& channels, const CallStream::Metadata& metadata)
      : channels_(channels), metadata_(metadata), streams_(channels.count()) {}

  /// A call is under way, as long as this lives; and whether it is to go over a stream.
  class Entered {
   public:
    explicit Entered(CallStreams& streams);
    ~Entered() { streams_.calls_.fetch_sub(1, std::memory_order_relaxed); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    bool streamed() const { return streamed_; }

   private:
    CallStreams& streams_;
    bool streamed_ = false;
  };

  /// The stream of this thread's connection.
  std::shared_ptr<CallStream> Get();
  /// The server does not have the method.
  void GiveUp() { unknown_.store(true, std::memory_order_relaxed); }
  /// A call was lost: who is behind the address now may be a newer server.
  void AskAgain() {
    if (unknown_.load(std::memory_order_relaxed)) unknown_.store(false, std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<CallStream> stream;  // guarded by mutex
  };

  const Channels& channels_;
  const CallStream::Metadata& metadata_;
  std::vector<Slot> streams_;
  std::atomic<bool> unknown_{false};
  alignas(64) std::atomic<int> calls_{0};
  std::atomic<bool> busy_{false};
};

}  // namespace kvstore::client
