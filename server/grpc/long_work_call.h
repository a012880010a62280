#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kvstore/v1/shards.pb.h"
#include "kvstore_api/types.h"
#include "server/call/call.h"
#include "server/grpc/grpc_transport.h"
#include "server/grpc/incoming.h"
#include "server/grpc/special_handlers.h"
#include "wire/convert.h"

namespace kvstore::server {

/// The parts of a call that its long work may use.
template <typename Response>
struct LongWork {
  Core& core;
  std::shared_ptr<const Principal> principal;  ///< Null where everybody may do everything.
  std::string peer;                            ///< As CallTransport::Peer.
  /// Sends a message of progress, unless another message is still being sent. Returns false if the work must
  /// stop.
  std::function<bool(Response message)> progress;
  /// Sends a message, as soon as those before were sent.
  std::function<void(Response message)> tell;
};

// Each DoLongWork does the work of a LongWorkCall, from its request to its result.
absl::StatusOr<v1::CompactResponse::Result> DoLongWork(const v1::CompactRequest& request,
                                                       const LongWork<v1::CompactResponse>& work);
absl::StatusOr<v1::CreateBackupResponse::Result> DoLongWork(const v1::CreateBackupRequest& request,
                                                            const LongWork<v1::CreateBackupResponse>& work);
absl::StatusOr<v1::OperateShardsResponse::Result> DoLongWork(const v1::OperateShardsRequest& request,
                                                             const LongWork<v1::OperateShardsResponse>& work);

/// Checks, before the work begins, what the right alone does not allow. Returns something that is kept until
/// the call ends.
template <typename Request>
absl::StatusOr<std::shared_ptr<void>> AdmitLongWork(Core&, const Principal*, const Request&) {
  return std::shared_ptr<void>();
}
/// PERMISSION_DENIED unless the server knows who calls; RESOURCE_EXHAUSTED if there are
/// Core::kMaxShardOperations.
absl::StatusOr<std::shared_ptr<void>> AdmitLongWork(Core& core, const Principal* principal,
                                                    const v1::OperateShardsRequest& request);

/// Returns what the log says that the call asks for; empty: its operation says it.
template <typename Request>
std::string DescribeLongWork(const Request&) {
  return "";
}
std::string DescribeLongWork(const v1::OperateShardsRequest& request);

/// Whether the limits of the call end the work between any two of its steps. Work that could leave something
/// unusable then is stopped by its progress alone.
template <typename Request>
inline constexpr bool kEndsWithItsCall = !std::is_same_v<Request, v1::OperateShardsRequest>;

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
    LogBegin();
    Run([this] { Work(); });
  }
  void OnWriteDone(bool ok) override {
    absl::Status end;
    {
      const MutexLock lock(mutex_);
      MarkClientResponded();
      writing_ = false;
      if (!ok) {
        MarkCancelled();
        waiting_.clear();
      }
      if (!waiting_.empty()) {
        Response next = std::move(waiting_.front());
        waiting_.pop_front();
        return Send(std::move(next));
      }
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
    SetWhat(DescribeLongWork(incoming_.message));
    if (auto status = Admit(DatasetOf(incoming_.message), incoming_.size); !status.ok()) return status;
    auto kept = AdmitLongWork(core_, principal_.get(), incoming_.message);
    if (!kept.ok()) return kept.status();
    kept_ = *std::move(kept);
    return absl::OkStatus();
  }

  void Work() {
    const LongWork<Response> work{
        .core = core_,
        .principal = principal_,
        .peer = Peer(),
        .progress = [this](Response message) { return SendProgress(std::move(message)); },
        .tell = [this](Response message) { Tell(std::move(message)); }};
    absl::StatusOr<typename Response::Result> result;
    absl::Status end;
    {
      std::optional<CallScope> scope;
      if constexpr (kEndsWithItsCall<Request>) scope.emplace(Limits(/*stream=*/true));
      result = DoLongWork(incoming_.message, work);
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

  bool SendProgress(Response message) {
    if (core_.draining.load(std::memory_order_relaxed) || cancelled().load(std::memory_order_relaxed) ||
        !CheckCall().ok() || !CheckStillAllowed().ok()) {
      return false;
    }
    const MutexLock lock(mutex_);
    if (!writing_) Send(std::move(message));  // else this one is left out
    return true;
  }
  void Tell(Response message) {
    if (cancelled().load(std::memory_order_relaxed)) return;
    const MutexLock lock(mutex_);
    if (writing_) {
      waiting_.push_back(std::move(message));
    } else {
      Send(std::move(message));
    }
  }

  void Send(Response message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    sent_ = std::move(message);
    writing_ = true;
    MarkWaitingForClient();
    this->StartWrite(&sent_);
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
  std::shared_ptr<void> kept_;  // of AdmitLongWork
  Response sent_;               // gRPC's while writing_
  Response result_;
  Mutex mutex_;
  std::deque<Response> waiting_ ABSL_GUARDED_BY(mutex_);  // to be sent, while writing_
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool worked_ ABSL_GUARDED_BY(mutex_) = false;  // the work is over
  bool result_sent_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

using CompactCall = LongWorkCall<v1::CompactRequest, v1::CompactResponse>;
using CreateBackupCall = LongWorkCall<v1::CreateBackupRequest, v1::CreateBackupResponse>;
using OperateShardsCall = LongWorkCall<v1::OperateShardsRequest, v1::OperateShardsResponse>;

}  // namespace kvstore::server
