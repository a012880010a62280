#include "server/stream_calls.h"

#include "kvstore_api/in_doubt.h"

namespace kvstore::server {

// ---- imports ----

void ImportCall::OnReadDone(bool ok) {
  GoOn();
  if (!ok) return Close(absl::OkStatus());
  Run([this] { Work(); });
}

void ImportCall::Work() {
  absl::Status status;
  {
    // One message at a time, on whichever thread.
    const std::lock_guard lock(mutex_);
    status = taken_ ? absl::OkStatus() : TakeMessage();
    if (status.ok()) status = PutMessage();
    if (status.ok() && !unfinished_.moving.ok()) {
      if (Holds(unfinished_.moving)) return HoldUntilAgain([this] { Work(); });
      refused_by_ = unfinished_.moving;
    }
    if (status.ok()) {
      EndHold();
      taken_ = false;
      unfinished_ = {};
      Answered(response_.ByteSizeLong());
      WaitForClient();
      StartWrite(&response_);
      return;
    }
  }
  Close(status);
}

absl::Status ImportCall::TakeMessage() {
  if (!incoming_.status.ok()) return incoming_.status;
  // The first message says which dataset it is about, and lets the call in; all are about the same.
  if (!entered_once_) {
    entered_once_ = true;
    if (auto status = Enter(request_.dataset(), incoming_.memory); !status.ok()) return status;
  } else if (request_.dataset() != dataset_) {
    return absl::InvalidArgumentError("dataset: all messages of an import are about the same");
  } else {
    auto status = CheckStillAllowed();
    if (status.ok()) status = Took(incoming_.memory);
    // Of this message nothing is put; of those before the client may have the answers or not.
    if (!status.ok()) return MarkInDoubt(std::move(status));
  }
  if (request_.has_attempt()) return absl::InvalidArgumentError("attempt: not in an import");
  response_.Clear();
  taken_ = true;
  return absl::OkStatus();
}

absl::Status ImportCall::PutMessage() {
  if (!refused_by_.ok()) {
    // Or a later write of a row would come before that one, when it is made again.
    for (int i = 0; i < request_.writes_size(); ++i) {
      wire::ToWire(refused_by_, *response_.add_results()->mutable_error());
    }
    return absl::OkStatus();
  }
  const CallScope scope(Limits(/*stream=*/true));
  return Handle(core_.router, request_, response_, &unfinished_);
}

void ImportCall::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    Sent(response_.ByteSizeLong());
    if (ok) {
      WaitForClient();
      StartRead(&incoming_);
      return;
    }
  }
  Close(absl::CancelledError("the client is gone"));
}

void ImportCall::Close(const absl::Status& status) {
  End(status);
  // It may not be counted, and the client may take its time to hear this.
  incoming_.message = {};
  WaitForClient();
  Finish(wire::ToWire(status));
}

// ---- compactions ----

void CompactCall::Start() {
  if (auto status = Greet(); !status.ok()) return Close(status);
  WaitForClient();
  StartRead(&incoming_);
}

void CompactCall::OnReadDone(bool ok) {
  GoOn();
  if (auto status = Take(ok); !status.ok()) return Close(status);
  Run([this] { Work(); });
}

absl::Status CompactCall::Take(bool read) {
  if (!read) return NoRequest();
  if (!incoming_.status.ok()) return incoming_.status;
  return Enter(incoming_.message.dataset(), incoming_.memory);
}

bool CompactCall::Tell(uint64_t done, uint64_t total) {
  if (core_.draining.load(std::memory_order_relaxed) || !CheckCall().ok() || !CheckStillAllowed().ok()) {
    return false;
  }
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
    result = core_.router.Compact(incoming_.message.dataset(),
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
