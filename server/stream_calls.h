#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "kvstore_api/moved.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/incoming.h"
#include "server/special_handlers.h"
#include "wire/convert.h"

/// Calls with many messages. Each deletes itself.
namespace kvstore::server {

/// One request, many answers, which a producer makes. While one is sent the next is made, and no more: a
/// client that is slow slows the work down, and its call holds two messages.
template <typename Request, typename Response>
class ProducedStream : public grpc::ServerBidiReactor<Incoming<Request>, Response>, private Call {
 public:
  ProducedStream(Core& core, Operation operation, grpc::CallbackServerContext& context)
      : Call(core, operation, context) {
    Track();
  }

  void Start() {
    if (auto status = Greet(); !status.ok()) return Close(status);
    WaitForClient();
    this->StartRead(&incoming_);
  }

 private:
  /// The memory of a larger message is not kept for the next one.
  static constexpr size_t kKeptBytes = size_t{512} << 10;

  void OnReadDone(bool ok) override {
    GoOn();
    if (auto status = Take(ok); !status.ok()) {
      // It is not counted, and the client may take its time to hear this.
      incoming_.message = {};
      return Close(status);
    }
    producer_ = Produce(core_.router, incoming_.message);
    Run([this] { MakeNext(); });
  }
  absl::Status Take(bool read) {
    if (!read) return NoRequest();
    if (!incoming_.status.ok()) return incoming_.status;
    return Enter(DatasetOf(incoming_.message), incoming_.memory);
  }
  void OnCancel() override { MarkCancelled(); }
  // On a worker: what the producer holds may wait when it goes, as a scan of another server does, and the
  // threads of gRPC must not.
  void OnDone() override {
    Untrack();
    core_.workers.Post([this] {
      // All that Close came behind: gRPC has handed it over, in code that ThreadSanitizer does not see.
      if (closed_.load(std::memory_order_acquire)) delete this;
    });
  }

  void MakeNext() {
    absl::StatusOr<bool> made = false;
    absl::Status moving;
    {
      const CallScope scope(Limits(/*stream=*/true));
      next_.Clear();
      auto status = CheckLimits();
      if (status.ok()) status = CheckStillAllowed();
      if (status.ok() && !HasRoom()) return HoldForRoom([this] { MakeNext(); });
      if (status.ok()) {
        made = producer_(next_, &moving);
      } else {
        made = status;
      }
      if (!moving.ok()) {
        if (Holds(moving)) return HoldUntilAgain([this] { MakeNext(); });
        const absl::Status told = WithoutHold(moving);
        made = IsMoving(told) ? producer_(next_, nullptr) : told;
      }
    }
    EndHold();
    {
      const std::lock_guard lock(mutex_);
      ready_ = made.ok() && *made;
      if (!ready_) {
        end_ = made.status();
        ended_ = true;
      } else {
        next_bytes_ = next_.ByteSizeLong();
        Answered(next_bytes_);
      }
      if (writing_ || Advance()) return;
    }
    Close();
  }

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      GoOn();
      writing_ = false;
      Sent(sent_bytes_);
      // Cleared it would keep its memory.
      if (sent_bytes_ > kKeptBytes) sent_ = Response();
      lost_ = !ok;
      // While the next message is being made, its maker goes on.
      if (!(ready_ || ended_) || Advance()) return;
    }
    Close();
  }

  /// Sends what is ready; false if there is nothing any more, or nobody to send it to: then Close. Under
  /// mutex_, when nothing is being sent.
  bool Advance() {
    if (lost_ || ended_) return false;
    std::swap(sent_, next_);
    sent_bytes_ = next_bytes_;
    ready_ = false;
    writing_ = true;
    WaitForClient();
    this->StartWrite(&sent_);
    core_.workers.Post([this] { MakeNext(); });
    return true;
  }

  /// Not under mutex_: at any time after Finish this is gone.
  void Close() { Close(lost_ ? absl::CancelledError("the client is gone") : end_); }
  void Close(const absl::Status& status) {
    End(status);
    WaitForClient();
    closed_.store(true, std::memory_order_release);
    this->Finish(wire::ToWire(status));
  }

  Incoming<Request> incoming_;
  std::atomic<bool> closed_{false};
  Producer<Response> producer_;
  Response next_;     // of the one who makes it; of Advance while ready_
  Response sent_;     // of gRPC while writing_
  std::mutex mutex_;  // guards what follows
  bool writing_ = false;
  bool ready_ = false;
  size_t next_bytes_ = 0;
  size_t sent_bytes_ = 0;
  bool ended_ = false;
  bool lost_ = false;
  absl::Status end_;
};

/// ImportRows: each message is carried out, and answered, before the next is read.
class ImportCall : public grpc::ServerBidiReactor<Incoming<v1::PutRowsRequest>, v1::PutRowsResponse>,
                   private Call {
 public:
  ImportCall(Core& core, Operation operation, grpc::CallbackServerContext& context)
      : Call(core, operation, context) {
    Track();
  }

  void Start() {
    if (auto status = Greet(); !status.ok()) return Close(status);
    WaitForClient();
    StartRead(&incoming_);
  }

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { MarkCancelled(); }
  void OnDone() override { delete this; }

  void Work();
  /// Lets in what was read.
  absl::Status TakeMessage();
  absl::Status PutMessage();
  void Close(const absl::Status& status);

  std::mutex mutex_;  // guards what follows
  bool entered_once_ = false;
  bool taken_ = false;       // the message that was read last
  Unfinished unfinished_;    // of it
  absl::Status refused_by_;  // what an entry was told that met a move: nothing behind it is put
  Incoming<v1::PutRowsRequest> incoming_;
  const v1::PutRowsRequest& request_ = incoming_.message;
  v1::PutRowsResponse response_;
};

/// Compact: runs on one worker, and tells now and then how far it is.
class CompactCall : public grpc::ServerBidiReactor<Incoming<v1::CompactRequest>, v1::CompactResponse>,
                    private Call {
 public:
  CompactCall(Core& core, Operation operation, grpc::CallbackServerContext& context)
      : Call(core, operation, context) {
    Track();
  }

  void Start();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { MarkCancelled(); }
  void OnDone() override { delete this; }

  absl::Status Take(bool read);
  void Work();
  bool Tell(uint64_t done, uint64_t total);
  void SendResult();  // under mutex_
  void Close(const absl::Status& status);

  Incoming<v1::CompactRequest> incoming_;
  v1::CompactResponse sent_;  // of gRPC while writing_
  v1::CompactResponse result_;
  std::mutex mutex_;  // guards what follows
  bool writing_ = false;
  bool worked_ = false;
  bool result_sent_ = false;
  absl::Status end_;
};

}  // namespace kvstore::server
