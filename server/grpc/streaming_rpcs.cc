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

// ---- compactions ----

void CompactCall::Start() {
  if (auto status = Authenticate(); !status.ok()) return Close(status);
  MarkWaitingForClient();
  StartRead(&incoming_);
}

void CompactCall::OnReadDone(bool ok) {
  MarkClientResponded();
  if (auto status = AdmitRequest(ok); !status.ok()) return Close(status);
  Run([this] { Work(); });
}

absl::Status CompactCall::AdmitRequest(bool read) {
  if (!read) return MissingRequestError();
  if (!incoming_.status.ok()) return incoming_.status;
  return Admit(incoming_.message.dataset(), incoming_.size);
}

bool CompactCall::ReportProgress(uint64_t done, uint64_t total) {
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
  StartWrite(&sent_);
  return true;
}

void CompactCall::Work() {
  absl::StatusOr<ReclaimResult> result;
  absl::Status end;
  {
    const CallScope scope(Limits(/*stream=*/true));
    result = core_.router.Compact(incoming_.message.dataset(), [this](uint64_t done, uint64_t total) {
      return ReportProgress(done, total);
    });
  }
  {
    const MutexLock lock(mutex_);
    worked_ = true;
    end_ = result.status();
    if (result.ok()) {
      v1::CompactResponse::Result& told = *result_.mutable_result();
      told.set_bytes_before(result->bytes_before);
      told.set_bytes_after(result->bytes_after);
      told.set_expired_cells(result->expired_cells);
      told.set_surplus_cells(result->surplus_cells);
    }
    if (writing_) return;  // OnWriteDone goes on
    if (end_.ok()) return SendResult();
    end = end_;
  }
  Close(end);
}

void CompactCall::SendResult() {
  result_sent_ = writing_ = true;
  MarkWaitingForClient();
  StartWrite(&result_);
}

void CompactCall::OnWriteDone(bool ok) {
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

void CompactCall::Close(const absl::Status& status) {
  End(status);
  MarkWaitingForClient();
  Finish(wire::ToWire(status));
}

}  // namespace kvstore::server
