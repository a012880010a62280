#include "client/cursor.h"

#include <optional>
#include <utility>

#include "backend_api/marker.h"
#include "backend_api/scan_budget.h"
#include "client/outcome.h"
#include "wire/packed_items.h"

namespace kvstore::client {

Cursor::Cursor(Caller& caller, v1::ScanRowsRequest request)
    : caller_(caller), start_(request.marker()), request_(std::move(request)) {}

Cursor::~Cursor() {
  if (!stream_) return;
  stream_->context.TryCancel();
  static_cast<void>(stream_->reader->Finish());
}

absl::Status Cursor::Open() {
  auto more = ReadMessage(/*any=*/true);
  if (!more.ok()) return more.status();
  ended_ = !*more;
  return absl::OkStatus();
}

absl::StatusOr<bool> Cursor::ReadMessage(bool any) {
  const CallLimits& limits = CallScope::Current();
  const auto deadline = limits.deadline;
  for (;;) {
    if (auto status = CheckCall(); !status.ok()) return status;
    const bool is_new = !stream_;
    if (is_new) {
      stream_ = std::make_unique<Stream>();
      caller_.Prepare(stream_->context, deadline);
    }
    packed_ = {};
    message_.Clear();
    next_ = 0;
    std::optional<CancelWatch> watch(std::in_place, stream_->context, limits.cancelled, deadline);
    // This waits until there is a connection, and the request was sent.
    if (is_new) stream_->reader = caller_.Stub().ScanRows(&stream_->context, request_);
    const bool read = stream_->reader->Read(&message_);
    watch.reset();
    if (read) {
      if (message_.has_packed()) {
        if (message_.rows_size() > 0)
          return caller_.InvalidAnswerError("answered a scan with rows in two forms");
        packed_ = wire::PackedRowsReader(message_.packed());
      }
      if (message_.incarnation() != 0) incarnation_ = message_.incarnation();
      const std::string& marker = message_.marker();
      const bool moved = !marker.empty() && marker != request_.marker();
      if (moved) request_.set_marker(marker);
      if (HasRows()) {
        failures_ = 0;
        return true;
      }
      // A message without rows says how far the server has looked. It may say once that it got no further.
      if (moved) {
        failures_ = 0;
        if (last_key_.empty()) start_ = marker;
      } else if (std::exchange(stream_->empty, true)) {
        return caller_.InvalidAnswerError("answered a scan with one message after the other without rows");
      }
      if (any) return true;
      if (HasScanBudget()) return PausedError();
      continue;
    }
    const grpc::Status status = stream_->reader->Finish();
    const auto verdict = caller_.Classify(status, OutcomeOf(stream_->context), /*writes=*/false);
    stream_.reset();
    if (status.ok()) return false;
    // The watch may have cancelled the stream, which looks like a connection that was lost.
    if (verdict.lost) {
      if (auto over = CheckCall(); !over.ok()) return over;
    }
    // Without a deadline the scan gives up after so many failures.
    constexpr int kMaxFailures = 12;
    if (!verdict.retry || failures_ == kMaxFailures || !caller_.Pause(verdict, failures_, deadline)) {
      return verdict.status;
    }
    ++failures_;
  }
}

absl::StatusOr<bool> Cursor::Next(ScannedRow& row) {
  if (ended_) return false;
  if (!HasRows()) {
    auto more = ReadMessage(/*any=*/false);
    if (!more.ok()) return more;
    if (!*more) {
      ended_ = true;
      return false;
    }
  }
  if (packed_.has_next()) {
    if (auto status = packed_.Next(row); !status.ok()) return status;
    last_key_ = row.key;
    return true;
  }
  v1::ScanRowsResponse::Row& read = *message_.mutable_rows(next_++);
  last_key_ = read.key();
  row.key = std::move(*read.mutable_key());
  if (auto status = wire::ItemsFromWire(read, row.items); !status.ok()) return status;
  row.continues = read.continues();
  return true;
}

std::string Cursor::marker() const {
  // The message's marker is after its last row, that of the request is before its first. In between a marker
  // is made of the row that was returned last.
  if (last_key_.empty()) return start_;
  if (!HasRows() || ended_) return request_.marker();
  const auto end = OpenScanMarker(incarnation_, request_.marker());
  return SealScanMarker(
      incarnation_,
      {.row = last_key_, .inside = std::nullopt, .order = end.ok() ? end->order : std::string()});
}

}  // namespace kvstore::client
