#include "reports/row_puts.h"

#include <utility>

#include "backend_api/outcome.h"
#include "kvstore_api/call_scope.h"
#include "reports/rows.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// Well below the limit of a put.
constexpr size_t kBytesOfPut = size_t{6} << 20;
constexpr size_t kBytesOfCall = size_t{24} << 20;
constexpr size_t kRowsOfCall = 1'000;

}  // namespace

absl::Status RowPuts::Put(const RowKey& row, std::vector<Part> parts) {
  size_t bytes = 0;
  std::vector<Part> together;
  for (Part& part : parts) {
    if (!together.empty() && bytes + part.bytes.size() > kBytesOfPut) {
      KV_RETURN_IF_ERROR(PutOne(row, std::move(together), bytes));
      together.clear();
      bytes = 0;
    }
    bytes += part.bytes.size();
    together.push_back(std::move(part));
  }
  return PutOne(row, std::move(together), bytes);
}

absl::Status RowPuts::Flush() {
  while (!waiting_.empty()) KV_RETURN_IF_ERROR(Send());
  return absl::OkStatus();
}

absl::Status RowPuts::ErrorOf(absl::Status error) const {
  return may_have_written_ ? MarkInDoubt(std::move(error)) : error;
}

absl::Status RowPuts::Send() {
  KV_RETURN_IF_ERROR(CheckCall());
  std::vector<std::vector<CellWrite>> cells(waiting_.size());
  std::vector<RowWrite> writes;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    for (const Part& part : waiting_[i].parts) cells[i].push_back({part.name, part.bytes, std::nullopt});
    cells[i].push_back({kVersionColumn, waiting_[i].parts.front().name, std::nullopt});
    RowWrite write{.row = waiting_[i].row, .cells = cells[i]};
    // Parts that an earlier try has written keep their place among the chunks of the row.
    if (repeatable_) write.options.condition = Condition{.column = waiting_[i].parts.front().name};
    writes.push_back(write);
  }
  const auto results = metadata_.store().PutRows(metadata_.dataset(), writes);
  if (!results.ok()) {
    may_have_written_ = may_have_written_ || IsInDoubt(results.status());
    return results.status();
  }
  for (const auto& result : *results) {
    // A part that is there already was written by an earlier try of the same batch.
    if (result.ok() || IsInDoubt(result.status()) || absl::IsAlreadyExists(result.status()))
      may_have_written_ = true;
  }
  std::vector<Waiting> missing;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    const absl::Status& status = (*results)[i].status();
    if (status.ok()) continue;
    if (!repeatable_ || !absl::IsAlreadyExists(status)) return status;
    // The earlier try may have cut the parts into other puts, because they have other sizes when a segment
    // key was added meanwhile. So each of the others is tried alone.
    for (size_t part = 1; part < waiting_[i].parts.size(); ++part) {
      missing.push_back({waiting_[i].row, {std::move(waiting_[i].parts[part])}});
    }
  }
  waiting_ = std::move(missing);
  bytes_ = 0;
  return absl::OkStatus();
}

absl::Status RowPuts::PutOne(const RowKey& row, std::vector<Part> parts, size_t bytes) {
  if (!waiting_.empty() && (bytes_ + bytes > kBytesOfCall || waiting_.size() == kRowsOfCall)) {
    KV_RETURN_IF_ERROR(Flush());
  }
  bytes_ += bytes;
  waiting_.push_back({EncodeRowKey(row), std::move(parts)});
  return absl::OkStatus();
}

}  // namespace kvstore::reports
