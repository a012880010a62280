#pragma once

#include <absl/base/thread_annotations.h>

#include "kvstore/v1/reports.pb.h"
#include "server/grpc/message_stream.h"

namespace kvstore::server {

/// WritePoints. Each message is a batch. A batch that cannot be written is answered with its error, and the
/// stream goes on.
class WritePointsCall : public MessageStream<v1::WritePointsRequest, v1::WritePointsResponse> {
 public:
  using MessageStream::MessageStream;

 private:
  absl::StatusOr<bool> CarryOut() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
};

}  // namespace kvstore::server
