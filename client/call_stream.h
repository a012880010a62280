#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kvstore/v1/kvstore.grpc.pb.h"

namespace kvstore::client {

/// One stream of the method Calls, shared by the threads that call. What is called while the server takes up
/// a message goes with the next, together. Thread-safe.
///
/// Has a queue of gRPC and a thread of its own: those behind gRPC's callbacks sleep for 100 ms at a time once
/// nothing has come for a second, and the first answers then wait for them.
class CallStream {
 public:
  using Clock = std::chrono::steady_clock;
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  /// stub      must outlive it.
  /// metadata  sent once, for all calls.
  CallStream(v1::KVStore::StubInterface& stub, const Metadata& metadata);
  /// Ends the stream. No call may be under way any more.
  ~CallStream();
  CallStream(const CallStream&) = delete;
  CallStream& operator=(const CallStream&) = delete;

  /// It takes no more calls.
  bool closed() const;

  /// Makes a call, and waits for its answer, no longer than until the deadline; its number and timeout are
  /// set here. The status is that of the call as it would be by its own method. `answer` has the outcome of
  /// an error that the server made, and of one that left the call undone for certain: wire::kRefused if the
  /// stream ended before it was sent, kFailed if the deadline came before that. No outcome: it may have been
  /// done; but for UNIMPLEMENTED, with which the server does not know this method.
  grpc::Status Make(v1::Call call, Clock::time_point deadline, v1::Answer& answer);

 private:
  struct Waiting {
    std::mutex mutex;
    std::condition_variable wakes;
    bool done = false;  // guarded by mutex; no more changes then
    grpc::Status status;
    v1::Answer answer;
  };

  using List = std::vector<std::shared_ptr<Waiting>>;
  static void Wake(const List& done);

  /// Takes what happens on the stream, until it has ended.
  void Run();
  void OnRead();
  /// Sends what waits, if the server has taken up what was sent before. Under mutex_.
  void Send();
  /// The server wants no more. Under mutex_.
  void EndWriting();
  /// Gives up the calls that have not gone out; who made them is to be woken. Under mutex_.
  void Refuse(const grpc::Status& status, List& refused);
  void End(const grpc::Status& status);

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriterInterface<v1::CallsRequest, v1::CallsResponse>> stream_;
  v1::CallsResponse received_;  // of Run
  v1::CallsRequest sent_;       // of gRPC while writing_
  mutable std::mutex mutex_;    // guards what follows
  bool closed_ = false;         // for calls
  bool writing_ = true;         // until it is open
  bool stops_ = false;          // the server
  uint64_t last_ = 0;
  uint64_t last_sent_ = 0;  // the numbers of what is in next_ are larger
  uint64_t messages_ = 0;
  uint64_t taken_ = 0;  // of them, by the server
  std::deque<v1::Call> next_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Waiting>> waiting_;  // for answers; of next_, too
  std::thread thread_;                                               // Run
};

}  // namespace kvstore::client
