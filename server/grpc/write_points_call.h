#pragma once

#include <absl/base/thread_annotations.h>
#include <grpcpp/support/server_callback.h>

#include "base/mutex.h"
#include "kvstore/v1/reports.pb.h"
#include "server/call/call.h"
#include "server/grpc/grpc_transport.h"
#include "server/grpc/incoming.h"

namespace kvstore::server {

/// WritePoints. Each message is a batch, which is written and answered before the next is taken up. A batch
/// that cannot be written is answered with its error, and the stream goes on. Deletes itself.
class WritePointsCall
    : public grpc::ServerBidiReactor<Incoming<v1::WritePointsRequest>, v1::WritePointsResponse>,
      private GrpcTransport,
      private Call {
 public:
  WritePointsCall(Core& core, Operation operation, grpc::CallbackServerContext& context)
      : GrpcTransport(context), Call(core, operation, Info()) {
    Track();
  }

  void Start();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { MarkCancelled(); }
  void OnDone() override { delete this; }

  /// Writes the batch that was read, and answers it.
  void Work();
  /// Checks, and counts, the message that was read.
  absl::Status AdmitMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(const absl::Status& status);

  // Held by the thread that carries a message out: the next message may come on another one.
  Mutex mutex_;
  bool admitted_ ABSL_GUARDED_BY(mutex_) = false;  // by the first message
  Incoming<v1::WritePointsRequest> incoming_;      // gRPC's while it reads
  const v1::WritePointsRequest& request_ = incoming_.message;
  v1::WritePointsResponse response_;  // gRPC's while it writes
};

}  // namespace kvstore::server
