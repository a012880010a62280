#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kvstore_api/types.h"
#include "server/call/call.h"
#include "server/grpc/grpc_transport.h"
#include "server/grpc/incoming.h"
#include "server/grpc/special_handlers.h"
#include "wire/convert.h"

namespace kvstore::server {

// What a LongWorkCall does, from its request to its result. `progress` returns false if it must stop.
absl::StatusOr<v1::CompactResponse::Result> DoLongWork(Core& core, const v1::CompactRequest& request,
                                                       const Progress& progress);
absl::StatusOr<v1::CreateBackupResponse::Result> DoLongWork(Core& core,
                                                            const v1::CreateBackupRequest& request,
                                                            const Progress& progress);

/// A call that works for long on one worker, sends its progress now and then, and its result at the end.
/// Deletes itself.
template <typename Request, typename Response>
class LongWorkCall final : public grpc::ServerBidiReactor<Incoming<Request>, Response>,
                           private GrpcTransport,
                           private Call {
 public:
  LongWorkCall(Core& core, Operation operation, grpc::CallbackServerContext& context)
      : GrpcTransport(context), Call(core, operation, GrpcTransport::Info()) {
    Track();
  }

  void Start() {
    if (auto status = Authenticate(); !status.ok()) return Close(status);
    MarkWaitingForClient();
    this->StartRead(&incoming_);
  }

 private:
  void OnReadDone(bool ok) override {
    MarkClientResponded();
    if (auto status = AdmitRequest(ok); !status.ok()) return Close(status);
    Run([this] { Work(); });
  }
  void OnWriteDone(bool ok) override {
    absl::Status end;
    {
      const MutexLock lock(mutex_);
      MarkClientResponded();
      writing_ = false;
      if (!ok) MarkCancelled();
      if (!worked_) return;
      if (end_.ok() && !result_sent_ && ok) return SendResult();
      end = end_;
    }
    Close(end);
  }
  void OnCancel() override { MarkCancelled(); }
  void OnDone() override { delete this; }

  absl::Status AdmitRequest(bool read) {
    if (!read) return MissingRequestError();
    if (!incoming_.status.ok()) return incoming_.status;
    return Admit(DatasetOf(incoming_.message), incoming_.size);
  }

  void Work() {
    absl::StatusOr<typename Response::Result> result;
    absl::Status end;
    {
      const CallScope scope(Limits(/*stream=*/true));
      result = DoLongWork(core_, incoming_.message,
                          [this](uint64_t done, uint64_t total) { return ReportProgress(done, total); });
    }
    {
      const MutexLock lock(mutex_);
      worked_ = true;
      end_ = result.status();
      if (result.ok()) *result_.mutable_result() = *std::move(result);
      if (writing_) return;  // OnWriteDone goes on
      if (end_.ok()) return SendResult();
      end = end_;
    }
    Close(end);
  }

  /// Sends the progress, unless a message is still being sent. Returns false if the work must stop.
  bool ReportProgress(uint64_t done, uint64_t total) {
    if (core_.draining.load(std::memory_order_relaxed) || !CheckCall().ok() || !CheckStillAllowed().ok()) {
      return false;
    }
    const MutexLock lock(mutex_);
    if (writing_) return true;  // this report is left out
    sent_.Clear();
    sent_.mutable_progress()->set_done(done);
    sent_.mutable_progress()->set_total(total);
    writing_ = true;
    MarkWaitingForClient();
    this->StartWrite(&sent_);
    return true;
  }

  void SendResult() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    result_sent_ = writing_ = true;
    MarkWaitingForClient();
    this->StartWrite(&result_);
  }

  void Close(const absl::Status& status) {
    End(status);
    MarkWaitingForClient();
    this->Finish(wire::ToWire(status));
  }

  Incoming<Request> incoming_;
  Response sent_;  // gRPC's while writing_
  Response result_;
  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool worked_ ABSL_GUARDED_BY(mutex_) = false;  // the work is over
  bool result_sent_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

using CompactCall = LongWorkCall<v1::CompactRequest, v1::CompactResponse>;
using CreateBackupCall = LongWorkCall<v1::CreateBackupRequest, v1::CreateBackupResponse>;

}  // namespace kvstore::server
