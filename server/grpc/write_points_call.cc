#include "server/grpc/write_points_call.h"

#include <utility>

#include "backend_api/outcome.h"
#include "server/grpc/handlers.h"
#include "wire/convert.h"

namespace kvstore::server {

absl::StatusOr<bool> WritePointsCall::CarryOut() {
  const CallScope scope(Limits(/*stream=*/true));
  if (auto status = CheckLimits(); !status.ok()) return status;
  const absl::Status written = Handle(core_.router, request_, response_);
  // A call whose client is gone, or whose time is over, ends; any other error is that of the batch.
  auto status = written.ok() ? written : CheckLimits();
  if (!status.ok()) return MarkInDoubt(std::move(status));
  if (!written.ok()) wire::ToWire(written, *response_.mutable_error());
  return true;
}

}  // namespace kvstore::server
