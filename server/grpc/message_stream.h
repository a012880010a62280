#pragma once

#include <absl/base/thread_annotations.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backend_api/outcome.h"
#include "base/mutex.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "server/call/call.h"
#include "server/grpc/grpc_transport.h"
#include "server/grpc/incoming.h"
#include "server/grpc/special_handlers.h"
#include "wire/convert.h"

namespace kvstore::server {

/// A stream of requests about one dataset, each of which is carried out and answered before the next is read.
/// A subclass carries them out. The stream ends when its client ends it, or with the first error that is not
/// one of a request's parts. Deletes itself.
template <typename Request, typename Response>
class MessageStream : public grpc::ServerBidiReactor<Incoming<Request>, Response>,
                      private GrpcTransport,
                      protected Call {
 public:
  MessageStream(Core& core, Operation operation, grpc::CallbackServerContext& context)
      : GrpcTransport(context), Call(core, operation, Info()) {
    Track();
  }

  void Start() {
    if (auto status = Authenticate(); !status.ok()) return Close(status);
    MarkWaitingForClient();
    this->StartRead(&incoming_);
  }

 protected:
  /// Carries out request_, which was admitted, and adds to response_. False: the call was suspended, and
  /// Work is called again, on the same request and with the response as it was left. An error ends the
  /// stream.
  virtual absl::StatusOr<bool> CarryOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  /// Carries out the request that was read last, or what is left of it, and answers it.
  void Work() {
    absl::Status status;
    {
      const MutexLock lock(mutex_);
      status = admitted_ ? absl::OkStatus() : AdmitMessage();
      if (status.ok() && !taken_) {
        const absl::StatusOr<bool> may = MayTake();
        if (may.ok() && !*may) return SuspendForRoom([this] { Work(); });
        status = may.status();
      }
      if (status.ok()) {
        const absl::StatusOr<bool> done = CarryOut();
        if (done.ok() && !*done) return;
        status = done.status();
      }
      if (status.ok()) return Answer();
    }
    Close(status);
  }

  // Held by the thread that carries a request out: the next request, or a retry, may come on another one.
  Mutex mutex_;
  Incoming<Request> incoming_;  // gRPC's while it reads
  const Request& request_ = incoming_.message;
  Response response_;  // gRPC's while it writes

 private:
  void OnReadDone(bool ok) override {
    MarkClientResponded();
    if (!ok) return Close(absl::OkStatus());
    Run([this] { Work(); });
  }
  void OnWriteDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      CountSent(response_.ByteSizeLong());
      if (ok) {
        MarkWaitingForClient();
        this->StartRead(&incoming_);
        return;
      }
    }
    Close(absl::CancelledError("the client is gone"));
  }
  void OnCancel() override { MarkCancelled(); }
  void OnDone() override { delete this; }

  /// Takes the request that was admitted from the limits of bytes a second. Returns false if it has to wait
  /// for them. With an error nothing of it is done, but the client may not have the answers to those before
  /// it.
  absl::StatusOr<bool> MayTake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const CallScope scope(Limits(/*stream=*/true));
    absl::Status status = CheckLimits();
    if (status.ok()) status = CheckStillAllowed();
    if (!status.ok()) return MarkInDoubt(std::move(status));
    const absl::StatusOr<bool> may = MayGoOn();
    if (!may.ok()) return MarkInDoubt(may.status());
    if (!*may) return false;
    TakeFromQuotas(incoming_.size.bytes);
    taken_ = true;
    return true;
  }
  /// Checks, and counts, the request that was read.
  absl::Status AdmitMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!incoming_.status.ok()) return incoming_.status;
    // The first request names the dataset, and the call is admitted by it.
    if (!std::exchange(begun_, true)) {
      if (auto status = Admit(request_.dataset(), incoming_.size, /*sync=*/false, ReportOf(request_));
          !status.ok()) {
        return status;
      }
      taken_ = true;
    } else if (request_.dataset() != dataset_) {
      return absl::InvalidArgumentError("dataset: all messages of a stream must name the same one");
    } else {
      report_ = ReportOf(request_).substr(0, kMaxRowKeyBytes);
      auto status = ReplaceRequest(incoming_.size);
      // Nothing of this request is done, but the client may not have the answers to those before it.
      if (!status.ok()) return MarkInDoubt(std::move(status));
    }
    response_.Clear();
    admitted_ = true;
    return absl::OkStatus();
  }

  void Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    admitted_ = taken_ = false;
    CountResponse(response_.ByteSizeLong());
    MarkWaitingForClient();
    this->StartWrite(&response_);
  }

  void Close(const absl::Status& status) {
    End(status);
    // A refused request is not counted, and its client may take its time to receive the error.
    incoming_.message = {};
    MarkWaitingForClient();
    this->Finish(wire::ToWire(status));
  }

  bool begun_ ABSL_GUARDED_BY(mutex_) = false;  // the call was admitted, by its first request
  // Whether the request that was read last is counted as in memory, and by the limits of bytes a second.
  bool admitted_ ABSL_GUARDED_BY(mutex_) = false;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kvstore::server
