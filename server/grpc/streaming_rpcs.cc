#include "server/grpc/streaming_rpcs.h"

#include "backend_api/outcome.h"

namespace kvstore::server {

// ---- imports ----

absl::StatusOr<bool> ImportCall::CarryOut() {
  if (request_.has_attempt()) return absl::InvalidArgumentError("attempt: must not be set in an import");
  if (auto status = PutMessage(); !status.ok()) return status;
  if (!unfinished_.migrating.ok()) {
    if (ShouldSuspend(unfinished_.migrating)) {
      SuspendUntilRetry([this] { Work(); });
      return false;
    }
    refused_by_ = unfinished_.migrating;
  }
  EndSuspension();
  unfinished_ = {};
  return true;
}

absl::Status ImportCall::PutMessage() {
  if (!refused_by_.ok()) {
    // Otherwise a later write of a row would be done before that entry is retried.
    for (int i = 0; i < request_.writes_size(); ++i) {
      wire::ToWire(refused_by_, *response_.add_results()->mutable_error());
    }
    return absl::OkStatus();
  }
  const CallScope scope(Limits(/*stream=*/true));
  return Handle(core_.router, request_, response_, &unfinished_);
}

}  // namespace kvstore::server
