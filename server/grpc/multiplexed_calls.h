#pragma once

#include <absl/base/thread_annotations.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "kvstore/v1/kvstore.grpc.pb.h"
#include "server/call/call.h"
#include "server/grpc/grpc_transport.h"
#include "server/grpc/incoming.h"
#include "server/grpc/puts_together.h"

namespace kvstore::server {

/// The method Calls: many calls over one stream.
///
/// Quick calls run on the thread that reads, message by message. So do the puts of a message that need not
/// wait, together: the store writes them as one. As for the others, the writes of a message that wait neither
/// for a device nor for another machine run one after the other on one worker, the puts that wait for a
/// device run together on another, and every other call runs on a worker of its own. Writes of one dataset
/// keep their order while it migrates; those of other datasets do not wait for them. Answers that are ready
/// while others are being sent go out together. When the client does not take its answers its next calls
/// wait: small calls may have large answers. Deletes itself.
class MultiplexedCalls : public grpc::ServerBidiReactor<Incoming<v1::CallsRequest>, v1::CallsResponse>,
                         private GrpcTransport,
                         private Call {
 public:
  MultiplexedCalls(Core& core, Operation operation, grpc::CallbackServerContext& context)
      : GrpcTransport(context), Call(core, operation, Info()) {}

  /// Begins to read. Called once, before gRPC gets the reactor.
  void Start();

 private:
  using Message = std::shared_ptr<const v1::CallsRequest>;

  /// A call from when its message was read until its answer was sent; its memory counts that long.
  struct Open {
    std::unique_ptr<v1::Answer> answer;
    std::unique_ptr<Call> call;  // null: it was refused
    /// Carries the call out; returns false if it is to be suspended.
    bool (*execute)(Call& call, absl::Status& status) = nullptr;
    PutCall* put = nullptr;  // the call, if it is a put that may be carried out together with others
    Message message{};       // of a refused call: what it holds counts for the answer, too
    size_t bytes = 0;        // of the finished answer
  };

  /// Calls of a message that one thread will run in their order, once there is room for their answers.
  struct Waiting {
    Message message;
    std::vector<Open> calls;
  };

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { MarkCancelled(); }
  void OnDone() override {
    Untrack();
    delete this;
  }
  void Drain() override;

  /// A message while its calls are being dispatched.
  struct Dispatching {
    const Message& message;
    const Clock::time_point came;
    std::vector<Open> writes{};   // that wait for nothing
    std::vector<Open> flushed{};  // puts that wait for the device
    bool writes_run_here = true;  // so far
    int cells = 0;                // of the writes that run here
  };

  /// Runs a call of a message, posts it to a worker, or adds it to the message's writes.
  void Dispatch(const v1::Call& call, Dispatching& dispatching);
  /// Adds a write that waits for nothing to those of its message.
  void AddWrite(Open open, Dispatching& dispatching);
  /// Carries out the writes of a message, or has workers do it.
  void StartWrites(Dispatching& dispatching);
  /// Answers a call with an error instead of running it.
  void Refuse(const Message& message, const v1::Call& call, const absl::Status& status);
  template <typename Request>
  void Dispatch(Operation operation, const v1::Call& call, const Request& request, Dispatching& dispatching);
  /// Runs a call, and has its answer sent with the next message. Returns false if it is to be suspended and
  /// retried.
  bool Execute(Open& open);
  /// Runs the calls in their order. From the first call on a dataset that migrates, the calls on that dataset
  /// are suspended.
  void ExecuteAll(const Message& message, std::vector<Open> calls);
  /// Carries out puts, those of each dataset together. Those that would wait, and may not, go to a worker.
  void PutAll(const Message& message, std::vector<Open> puts, Patience patience);
  /// Suspends calls on one dataset, the first of which has found that it migrates. They stay together, so
  /// that they are retried in their order.
  void Suspend(const Message& message, std::vector<Open> calls);
  void Retry(const Message& message, std::vector<Open> calls);
  static void SetError(v1::Answer& answer, const absl::Status& status);
  void Answer(Open&& open, const absl::Status& status);
  /// Returns whether the client has to take answers before more are made.
  bool IsFull() const;
  /// Has the calls run, in their order, when there is room. The thread must call FinishWork afterwards.
  void QueueForRoom(const Message& message, std::vector<Open> calls);
  /// Has workers run waiting calls, at most so many of Waiting, if there is room.
  void ResumeWaiting(size_t most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Has a worker run the calls in their order, and send their answers together.
  void HandOver(const Message& message, std::vector<Open> calls);
  /// As HandOver, but the worker's thread is already counted in open_.
  void PostAll(const Message& message, std::vector<Open> calls);
  /// Counts one thread less at work on this object, and sends what is ready. The object may be gone when this
  /// returns.
  void FinishWork();

  /// Sends what is ready. Returns true when everything is done: then the caller must Close, without the lock.
  bool Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Reads the next message, if there is room for it and the last one was dispatched. Not after Send has
  /// returned true.
  void ReadOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close();

  std::shared_ptr<Incoming<v1::CallsRequest>> reading_ =
      std::make_shared<Incoming<v1::CallsRequest>>();  // gRPC's while it reads
  v1::CallsResponse sent_;                             // gRPC's while writing_
  /// The end of the stream. OnReadDone sets it under mutex_; Close reads it when nothing else is left.
  absl::Status end_;
  Mutex mutex_;
  /// Counts the calls that were not handed to gRPC yet, the threads at work on this, and the reading itself.
  size_t open_ ABSL_GUARDED_BY(mutex_) = 1;
  std::deque<Open> ready_ ABSL_GUARDED_BY(mutex_);
  std::vector<Open> sending_ ABSL_GUARDED_BY(mutex_);  // their answers are in sent_
  /// The numbers of calls for whose message there was no room. Their answers are made when they can be sent,
  /// because nothing counts them.
  std::deque<uint64_t> turned_away_ ABSL_GUARDED_BY(mutex_);
  size_t sending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<size_t> unsent_bytes_{0};  // of what is ready or being sent; changed under mutex_
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool dispatching_ ABSL_GUARDED_BY(mutex_) = false;  // a message that was read
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;       // nothing is being read
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;         // the client is gone
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;        // the server stops
  bool reported_stops_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // messages that were dispatched
  uint64_t reported_taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kvstore::server
