#include "server/grpc/write_points_call.h"

#include <string_view>
#include <utility>

#include "backend_api/outcome.h"
#include "kvstore_api/limits.h"
#include "server/grpc/handlers.h"
#include "wire/convert.h"

namespace kvstore::server {

void WritePointsCall::Start() {
  if (auto status = Authenticate(); !status.ok()) return Close(status);
  MarkWaitingForClient();
  StartRead(&incoming_);
}

void WritePointsCall::OnReadDone(bool ok) {
  MarkClientResponded();
  if (!ok) return Close(absl::OkStatus());
  Run([this] { Work(); });
}

void WritePointsCall::Work() {
  absl::Status status;
  {
    const MutexLock lock(mutex_);
    status = AdmitMessage();
    if (status.ok()) {
      const CallScope scope(Limits(/*stream=*/true));
      status = CheckLimits();
      if (status.ok()) {
        response_.Clear();
        const absl::Status written = Handle(core_.router, request_, response_);
        // A call whose client is gone, or whose time is over, ends; any other error is that of the batch.
        status = written.ok() ? written : CheckLimits();
        if (!status.ok()) status = MarkInDoubt(std::move(status));
        if (!written.ok()) wire::ToWire(written, *response_.mutable_error());
      }
    }
    if (status.ok()) {
      CountResponse(response_.ByteSizeLong());
      MarkWaitingForClient();
      StartWrite(&response_);
      return;
    }
  }
  Close(status);
}

absl::Status WritePointsCall::AdmitMessage() {
  if (!incoming_.status.ok()) return incoming_.status;
  // The first message names the dataset, and the call is admitted by it. All messages are about that dataset.
  if (!std::exchange(admitted_, true))
    return Admit(request_.dataset(), incoming_.size, /*sync=*/false, request_.report());
  if (request_.dataset() != dataset_)
    return absl::InvalidArgumentError("dataset: all messages of a stream must name the same one");
  report_ = std::string_view(request_.report()).substr(0, kMaxRowKeyBytes);
  auto status = CheckStillAllowed();
  if (status.ok()) status = ReplaceRequest(incoming_.size);
  // Nothing of this message is written, but the client may not have the answers to those before it.
  return status.ok() ? status : MarkInDoubt(std::move(status));
}

void WritePointsCall::OnWriteDone(bool ok) {
  {
    const MutexLock lock(mutex_);
    CountSent(response_.ByteSizeLong());
    if (ok) {
      MarkWaitingForClient();
      StartRead(&incoming_);
      return;
    }
  }
  Close(absl::CancelledError("the client is gone"));
}

void WritePointsCall::Close(const absl::Status& status) {
  End(status);
  // A refused request is not counted, and its client may take its time to receive the error.
  incoming_.message = {};
  MarkWaitingForClient();
  Finish(wire::ToWire(status));
}

}  // namespace kvstore::server
