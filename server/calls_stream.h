#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "kvstore/v1/kvstore.grpc.pb.h"
#include "server/call.h"
#include "server/incoming.h"

namespace kvstore::server {

/// Calls: many calls over one stream. What is quick is done on the thread that reads, message by message; of
/// the rest, writes that do not wait for a device or for a network one after the other on a worker, and all
/// others each on its own. Writes that are made one after the other stay so while their dataset moves, and
/// those of other datasets are made without them. Answers that are ready while others are being sent go
/// together. Calls of a client that does not take its answers wait: what they are may be small, and what they
/// give large. Deletes itself.
class CallsStream : public grpc::ServerBidiReactor<Incoming<v1::CallsRequest>, v1::CallsResponse>,
                    private Call {
 public:
  CallsStream(Core& core, Operation operation, grpc::CallbackServerContext& context)
      : Call(core, operation, context) {}

  /// Begins to read. Once, before it is given to gRPC.
  void Start();

 private:
  using Message = std::shared_ptr<const v1::CallsRequest>;

  /// A call, from its message until its answer is sent: so long its memory counts.
  struct Open {
    std::unique_ptr<v1::Answer> answer;
    std::unique_ptr<Call> call;  // null: it was turned away
    /// False: it is to be held.
    bool (*make)(Call& call, absl::Status& status) = nullptr;
    size_t bytes = 0;  // of the answer, when it is made
  };

  /// Calls of a message that one thread makes, one after the other, when there is room for their answers.
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

  /// A message while its calls are taken up.
  struct Taking {
    const Message& message;
    const Clock::time_point came;
    std::vector<Open> writes{};  // for one worker
  };

  /// Makes a call of a message, or has a worker make it, or adds it to the writes.
  void Take(const v1::Call& call, Taking& taking);
  /// Answers a call that is not made.
  void Refuse(const v1::Call& call, const absl::Status& status);
  template <typename Request>
  void Take(Operation operation, const v1::Call& call, const Request& request, Taking& taking);
  /// Makes a call: its answer goes with the next that are sent. False: it is to be held, and made again.
  bool Make(Open& open);
  /// Makes them one after the other. Those of a dataset that moves are held, from the first that meets that.
  void MakeAll(const Message& message, std::vector<Open> calls);
  /// Calls on one dataset, the first of which has met a move: holds them together, so that they are made in
  /// their order.
  void Hold(const Message& message, std::vector<Open> calls);
  void MakeAgain(const Message& message, std::vector<Open> calls);
  void Answer(Open&& open, const absl::Status& status);
  /// Whether the client has to take answers before more are made.
  bool IsFull() const;
  /// Has them made, in their order, when there is room. By a thread that calls Leave after it.
  void Wait(const Message& message, std::vector<Open> calls);
  /// Has workers make what waits, at most so many at first, if there is room. Under mutex_.
  void GoOnWithWaiting(size_t most);
  /// Has a worker make them, one after the other, and send their answers together.
  void HandOver(const Message& message, std::vector<Open> calls);
  /// One thread less is at work on this; it sends what it has made. This may be gone then.
  void Leave();

  /// Sends what is ready; true: all is done, and this is to be closed, by who called. Under mutex_.
  bool Send();
  void Close();

  std::shared_ptr<Incoming<v1::CallsRequest>> reading_ =
      std::make_shared<Incoming<v1::CallsRequest>>();  // of gRPC
  v1::CallsResponse sent_;                             // of gRPC while writing_
  std::mutex mutex_;                                   // guards what follows
  /// Calls that were not handed to gRPC yet, threads that are at work on this, and the reading itself.
  size_t open_ = 1;
  std::deque<Open> ready_;
  std::vector<std::unique_ptr<Call>> sending_;
  size_t sending_bytes_ = 0;
  std::atomic<size_t> held_bytes_{0};  // of what is ready or being sent; changed under mutex_
  std::deque<Waiting> waiting_;
  bool writing_ = false;
  bool paused_ = false;  // reading
  bool lost_ = false;    // the client
  bool stops_ = false;
  bool told_stops_ = false;
  uint64_t taken_ = 0;  // messages
  uint64_t told_taken_ = 0;
  absl::Status end_;  // of the stream
};

}  // namespace kvstore::server
