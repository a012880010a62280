#pragma once

#include <absl/base/thread_annotations.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/impl/codegen/channel_interface.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "base/one_event.h"
#include "kvstore/v1/kvstore.grpc.pb.h"

namespace kvstore::client {

/// One stream of the method Calls, which the threads that call share. Calls that are made while the server
/// takes up a message go together in the next one. Thread-safe.
///
/// It has a completion queue and a thread of its own, because those behind gRPC's callbacks sleep for 100 ms
/// at a time after a second without events, and the first answers after that would wait for them.
class MultiplexedStream {
 public:
  using Clock = std::chrono::steady_clock;
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  /// channel   Must outlive the stream.
  /// metadata  Sent once, for all calls.
  MultiplexedStream(grpc::ChannelInterface& channel, const Metadata& metadata);
  /// Ends the stream. No call may be in flight any more.
  ~MultiplexedStream();
  MultiplexedStream(const MultiplexedStream&) = delete;
  MultiplexedStream& operator=(const MultiplexedStream&) = delete;

  /// Returns whether the stream takes no more calls.
  bool closed() const;

  /// Sends a call, whose number and timeout are set here, and waits for its answer until the deadline, or
  /// until the caller cancels (CallScope), which the server is not told. Returns the status that the call's
  /// own method would have.
  ///
  /// With an error `answer` has the outcome, if it is the server's error or the call was certainly not done:
  /// wire::kRefused if the stream ended before the call was sent, kFailed if the deadline passed, or the
  /// caller cancelled, before that. Without an outcome the call may have been done; but UNIMPLEMENTED without
  /// one means that the server does not have the method Calls.
  grpc::Status Execute(v1::Call& call, Clock::time_point deadline, v1::Answer& answer);

 private:
  /// A call without an answer.
  struct Waiting {
    uint64_t number = 0;
    std::string field;  // the call as a field of CallsRequest
    bool sent = false;  // of the stream's mutex_
    OneEvent done;      // nothing here changes any more, so the thread that waits may read the rest
    grpc::Status status;
    v1::Answer answer;
  };

  using List = std::vector<std::shared_ptr<Waiting>>;
  static void Wake(const List& done);

  /// Handles the events of the stream until it has ended. Run by thread_.
  void Run();
  /// Takes what was read, sends what waits, and reads on.
  void OnRead();
  /// Sends the calls that wait, if the server has taken up what was sent before. Without the lock meanwhile,
  /// so that others can add calls to the next message. Returns whether it has sent something.
  bool Send(MutexLock& lock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Returns the message of the calls that wait, as many as fit, which count as sent from here on.
  grpc::ByteBuffer TakeMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Waits until no thread is about to write.
  void WaitForWriter(MutexLock& lock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Tells the server that no more calls follow.
  void EndWriting(MutexLock& lock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Ends the calls that were not sent with this status. Adds them to `refused`, for Wake.
  void Refuse(const grpc::Status& status, List& refused) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const grpc::Status& status);

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  /// Writes each CallsRequest as bytes, put together from calls that the threads of the callers have encoded.
  std::unique_ptr<grpc::ClientAsyncReaderWriter<grpc::ByteBuffer, v1::CallsResponse>> stream_;
  v1::CallsResponse received_;     // of thread_
  std::atomic<uint64_t> last_{0};  // the number of the last call
  mutable Mutex mutex_;
  std::condition_variable written_;                    // notified when is_in_write_ has become false
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;        // takes no more calls
  bool writing_ ABSL_GUARDED_BY(mutex_) = true;        // also until the stream is open
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;         // the server stops
  bool is_in_write_ ABSL_GUARDED_BY(mutex_) = false;   // a thread is about to write, without the lock
  uint64_t messages_ ABSL_GUARDED_BY(mutex_) = 0;      // that were sent
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;         // of them, by the server
  std::deque<Waiting*> next_ ABSL_GUARDED_BY(mutex_);  // the calls that were not sent yet
  /// The calls without an answer, those in next_ included, by number.
  absl::flat_hash_map<uint64_t, std::shared_ptr<Waiting>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace kvstore::client
