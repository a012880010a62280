#pragma once

#include <absl/base/thread_annotations.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <utility>

#include "backend_api/outcome.h"
#include "base/mutex.h"
#include "server/call/call.h"
#include "server/grpc/grpc_transport.h"
#include "server/grpc/handlers.h"
#include "server/grpc/incoming.h"
#include "server/grpc/message_stream.h"
#include "server/grpc/special_handlers.h"
#include "wire/convert.h"

/// RPCs with many messages. Each deletes itself.
namespace kvstore::server {

/// One request and a stream of answers, which a producer makes. While one message is being sent the next is
/// made, and no more: a slow client slows the work down, and its call has two messages in memory.
template <typename Request, typename Response>
class ProducedStream : public grpc::ServerBidiReactor<Incoming<Request>, Response>,
                       private GrpcTransport,
                       private Call {
 public:
  ProducedStream(Core& core, Operation operation, grpc::CallbackServerContext& context)
      : GrpcTransport(context), Call(core, operation, Info()) {
    Track();
  }

  void Start() {
    if (auto status = Authenticate(); !status.ok()) return Close(status);
    MarkWaitingForClient();
    this->StartRead(&incoming_);
  }

 private:
  /// A larger message gives its memory back instead of keeping it for the next one.
  static constexpr size_t kKeptBytes = size_t{512} << 10;

  void OnReadDone(bool ok) override {
    MarkClientResponded();
    if (auto status = AdmitRequest(ok); !status.ok()) {
      // A refused request is not counted, and its client may take its time to receive the error.
      incoming_.message = {};
      return Close(status);
    }
    producer_ = ProduceAny(core_, principal_, incoming_.message,
                           [this](size_t bytes) { return ReserveBytes(bytes); });
    Run([this] { ProduceNext(); });
  }
  absl::Status AdmitRequest(bool read) {
    if (!read) return MissingRequestError();
    if (!incoming_.status.ok()) return incoming_.status;
    return Admit(DatasetOf(incoming_.message), incoming_.size, /*sync=*/false, ReportOf(incoming_.message));
  }
  void OnCancel() override { MarkCancelled(); }
  // Deletes on a worker: the end of what the producer owns may wait, for example for a scan of another
  // server, and the threads of gRPC must not.
  void OnDone() override {
    Untrack();
    // Acquires what happened before Close. gRPC orders the two as well, in code that ThreadSanitizer does not
    // see.
    if (closed_.load(std::memory_order_acquire)) Post([this] { delete this; });
  }

  void ProduceNext() {
    while (MakeNext()) {
    }
  }

  /// Makes the next message, and sends it if no other is being sent. Returns whether this thread is to make
  /// another one; if not, this may be gone.
  bool MakeNext() {
    absl::StatusOr<bool> made = false;
    absl::Status migrating;
    {
      const CallScope scope(Limits(/*stream=*/true));
      next_.Clear();
      auto status = CheckLimits();
      if (status.ok()) status = CheckStillAllowed();
      if (status.ok() && operation_ == Operation::kWatchChanges) status = CheckServes();
      if (status.ok()) {
        const auto may = MayGoOn();
        if (may.ok() && !(*may && HasRoom())) {
          SuspendForRoom([this] { ProduceNext(); });
          return false;
        }
        status = may.status();
      }
      if (status.ok()) {
        made = producer_(next_, &migrating);
      } else {
        made = status;
      }
      if (const auto token = NothingYetBehind(migrating)) {
        SuspendForChanges(*token, [this] { ProduceNext(); });
        return false;
      }
      if (!migrating.ok()) {
        if (ShouldSuspend(migrating)) {
          SuspendUntilRetry([this] { ProduceNext(); });
          return false;
        }
        const absl::Status told = ErrorWithoutSuspension(migrating);
        made = IsMigrating(told) ? producer_(next_, nullptr) : told;
      }
    }
    EndSuspension();
    {
      const MutexLock lock(mutex_);
      ready_ = made.ok() && *made;
      if (!ready_) {
        end_ = made.status();
        ended_ = true;
      } else {
        next_bytes_ = next_.ByteSizeLong();
        CountResponse(next_bytes_);
      }
      if (writing_) return false;
      if (Advance()) {
        if (KeepsWorker()) return true;
        Post([this] { ProduceNext(); });
        return false;
      }
    }
    Close();
    return false;
  }

  void OnWriteDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      MarkClientResponded();
      writing_ = false;
      CountSent(sent_bytes_);
      // Clear() would keep its memory.
      if (sent_bytes_ > kKeptBytes) sent_ = Response();
      lost_ = !ok;
      // While the next message is being made, ProduceNext will go on.
      if (!(ready_ || ended_)) return;
      if (Advance()) return Post([this] { ProduceNext(); });
    }
    Close();
  }

  /// Sends the message that is ready; the caller must have the next one made. Returns false at the end of the
  /// answers, or when the client is gone: then the caller must Close, without the lock. Nothing may be being
  /// sent.
  bool Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (lost_ || ended_) return false;
    std::swap(sent_, next_);
    sent_bytes_ = next_bytes_;
    ready_ = false;
    writing_ = true;
    MarkWaitingForClient();
    this->StartWrite(&sent_);
    return true;
  }

  /// Must be called without the lock, because this may be gone at any time after Finish. Reads lost_ and end_
  /// without it, which do not change any more.
  void Close() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Close(lost_ ? absl::CancelledError("the client is gone") : end_);
  }
  void Close(const absl::Status& status) {
    End(status);
    MarkWaitingForClient();
    closed_.store(true, std::memory_order_release);
    this->Finish(wire::ToWire(status));
  }

  Incoming<Request> incoming_;
  std::atomic<bool> closed_{false};
  Producer<Response> producer_;
  Response next_;  // ProduceNext's until it is ready_, then Advance's
  Response sent_;  // gRPC's while writing_
  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  size_t next_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t sent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // no message is produced any more
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;   // the client is gone
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

/// ImportRows. Each message has writes, and its answer a result for each of them.
class ImportCall : public MessageStream<v1::PutRowsRequest, v1::PutRowsResponse> {
 public:
  using MessageStream::MessageStream;

 private:
  absl::StatusOr<bool> CarryOut() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Writes the rows of the message, or what is left of them.
  absl::Status PutMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Unfinished unfinished_ ABSL_GUARDED_BY(mutex_);  // of the message
  /// The error of an entry that found its dataset migrating. Nothing after it is put any more.
  absl::Status refused_by_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::server
