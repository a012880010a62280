#include "server/stream_calls.h"

namespace kvstore::server {

// ---- imports ----

void ImportCall::OnReadDone(bool ok) {
  GoOn();
  if (!ok) return Close(absl::OkStatus());
  Run([this] { Work(); });
}

void ImportCall::Work() {
  // The first message says which dataset it is about, and lets the call in; all are about the same.
  absl::Status status;
  if (!entered_once_) {
    status = Enter(request_.dataset(), request_.ByteSizeLong());
    entered_once_ = true;
  } else if (request_.dataset() != dataset_) {
    status = absl::InvalidArgumentError("dataset: all messages of an import are about the same");
  }
  if (status.ok() && request_.has_attempt()) {
    status = absl::InvalidArgumentError("attempt: not in an import");
  }
  if (status.ok()) {
    const CallScope scope(Limits(/*stream=*/true));
    response_.Clear();
    status = Handle(core_.router, request_, response_);
  }
  if (!status.ok()) return Close(status);
  Answered(response_.ByteSizeLong());
  WaitForClient();
  StartWrite(&response_);
}

void ImportCall::OnWriteDone(bool ok) {
  Sent();
  if (!ok) return Close(absl::CancelledError("the client is gone"));
  WaitForClient();
  StartRead(&request_);
}

void ImportCall::Close(const absl::Status& status) {
  End(status);
  WaitForClient();
  Finish(wire::ToWire(status));
}

// ---- compactions ----

void CompactCall::Start() {
  if (auto status = Enter(request_.dataset(), request_.ByteSizeLong()); !status.ok()) return Close(status);
  Run([this] { Work(); });
}

bool CompactCall::Tell(uint64_t done, uint64_t total) {
  if (core_.draining.load(std::memory_order_relaxed) || !CheckCall().ok()) return false;
  const std::lock_guard lock(mutex_);
  if (writing_) return true;  // this one is left out
  sent_.Clear();
  sent_.mutable_progress()->set_done(done);
  sent_.mutable_progress()->set_total(total);
  writing_ = true;
  WaitForClient();
  StartWrite(&sent_);
  return true;
}

void CompactCall::Work() {
  absl::StatusOr<ReclaimResult> result;
  {
    const CallScope scope(Limits(/*stream=*/true));
    result = core_.router.Compact(request_.dataset(),
                                  [this](uint64_t done, uint64_t total) { return Tell(done, total); });
  }
  {
    const std::lock_guard lock(mutex_);
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
  }
  Close(end_);
}

void CompactCall::SendResult() {
  result_sent_ = writing_ = true;
  WaitForClient();
  StartWrite(&result_);
}

void CompactCall::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    GoOn();
    writing_ = false;
    if (!ok) MarkCancelled();
    if (!worked_) return;
    if (end_.ok() && !result_sent_ && ok) return SendResult();
  }
  Close(end_);
}

void CompactCall::Close(const absl::Status& status) {
  End(status);
  WaitForClient();
  Finish(wire::ToWire(status));
}

}  // namespace kvstore::server
