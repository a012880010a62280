#include <algorithm>
#include <deque>
#include <utility>

#include "backend_api/batch_bytes.h"
#include "backend_api/outcome.h"
#include "backend_api/validate.h"
#include "client/caller.h"
#include "client/client.h"
#include "client/cursor.h"
#include "client/outcome.h"
#include "wire/convert.h"
#include "wire/packed_items.h"

/// Client: the calls on rows, and batches, which are cut into messages.
namespace kvstore::client {
namespace {

/// No entry is added to a message that would have more bytes with it. One entry alone may be larger.
constexpr size_t kMessageBytes = size_t{4} << 20;
constexpr size_t kMessageEntries = 2'000;
/// How many messages of an import are in flight at a time.
constexpr size_t kMessagesAhead = 2;

size_t SizeOf(const RowRead& read) {
  size_t bytes = 64 + read.row.size() + read.options.marker.size();
  for (const std::string& column : read.options.columns.value_or(std::vector<std::string>())) {
    bytes += column.size() + 8;
  }
  return bytes;
}

size_t SizeOf(const RowWrite& write) {
  size_t bytes = 32 + write.row.size();
  for (const CellWrite& cell : write.cells) bytes += cell.column.size() + cell.value.size() + 24;
  return bytes;
}

size_t SizeOf(const RowDelete& one) {
  size_t bytes = 32 + one.row.size();
  if (one.options.columns) {
    for (const std::string& column : *one.options.columns) bytes += column.size() + 8;
  }
  if (one.options.cells) {
    for (const CellName& cell : *one.options.cells) bytes += cell.column.size() + 24;
  }
  return bytes;
}

/// Returns how many of the first entries go into one message; at least one.
template <typename Entry>
size_t CountOfMessage(std::span<const Entry> entries) {
  size_t bytes = SizeOf(entries[0]);
  size_t count = 1;
  while (count < entries.size() && count < kMessageEntries) {
    bytes += SizeOf(entries[count]);
    if (bytes > kMessageBytes) break;
    ++count;
  }
  return count;
}

void ToWire(const RowRead& read, v1::RowRead& message) {
  message.set_row(std::string(read.row));
  wire::ToWire(read.options, *message.mutable_options());
}

void ToWire(const RowWrite& write, v1::RowWrite& message) {
  message.set_row(std::string(write.row));
  wire::ToWire(write.cells, *message.mutable_cells());
  if (write.options.condition) wire::ToWire(*write.options.condition, *message.mutable_condition());
  message.set_sync(write.options.sync);
}

void ToWire(const RowDelete& one, v1::RowDelete& message) {
  message.set_row(std::string(one.row));
  wire::ToWire(one.options, *message.mutable_options());
}

absl::StatusOr<PutResult> FromResult(const v1::PutRowsResponse::Result& result) {
  if (result.has_error()) return wire::FromWire(result.error());
  PutResult put;
  if (result.has_timestamp()) put.timestamp = result.timestamp();
  return put;
}

/// Converts a message with items and a marker.
template <typename Message>
absl::StatusOr<Row> RowOf(const Caller& caller, const ReadOptions& options, Message& message) {
  Row row;
  const int columns = message.has_packed() ? message.packed().cells_size() : message.items_size();
  auto fits = caller.CheckPage(columns, options.limit, options.marker, message.marker(),
                               /*may_be_empty=*/true);
  if (!fits.ok()) return fits;
  if (auto status = wire::ItemsFromWire(message, row.items); !status.ok()) return status;
  row.marker = std::move(*message.mutable_marker());
  return row;
}

/// Returns INTERNAL unless there are as many results as entries were sent.
absl::Status CheckCount(const Caller& caller, size_t results, size_t sent) {
  if (results == sent) return absl::OkStatus();
  return caller.InvalidAnswerError(results < sent ? "answered fewer entries than were sent"
                                                  : "answered more entries than were sent");
}

/// Reads the messages of a stream that answers a batch, and cancels the stream when they are invalid or too
/// much. Returns INTERNAL for a message without entries, or with more than were asked for.
///
/// count  How many results there have to be at the end, with those that are there. When they become too much
///        (BatchBytes) the rest of them is BatchFullError.
/// add    Adds a result to `results`, and its bytes to `bytes`.
template <typename Response, typename Result, typename Add>
absl::Status ReadResults(const Caller& caller, Caller::Try& attempt,
                         grpc::ClientReaderInterface<Response>& stream, size_t count,
                         std::vector<absl::StatusOr<Result>>& results, const BatchBytes& bytes,
                         const Add& add) {
  absl::Status invalid;
  for (Response response; results.size() < count && stream.Read(&response);) {
    const auto more = static_cast<size_t>(response.results_size());
    if (more == 0) {
      invalid = caller.InvalidAnswerError("answered a message without entries");
    } else {
      invalid = CheckCount(caller, std::max(results.size() + more, count), count);
    }
    if (invalid.ok()) {
      for (auto& result : *response.mutable_results()) add(result);
      if (!bytes.full()) continue;
      results.resize(count, BatchFullError());
    }
    attempt.Context().TryCancel();
    static_cast<void>(stream.Finish());
    break;
  }
  return invalid;
}

/// One attempt of Import. A verdict with `retry` and no results says that nothing was done.
Caller::Verdict ImportOnce(Caller& caller, std::string_view dataset, std::span<const RowWrite> writes,
                           std::vector<absl::StatusOr<PutResult>>& results) {
  grpc::ClientContext context;
  const CallLimits& limits = CallScope::Current();
  caller.Prepare(context, limits.deadline);
  const CancelWatch watch(context, limits.cancelled);
  const auto stream = caller.Stub().ImportRows(&context);
  std::span<const RowWrite> rest = writes;
  bool broken = false;
  std::deque<size_t> ahead;  // how many writes each message in flight has
  size_t sent = 0;
  while (!broken && results.size() < writes.size()) {
    while (!broken && !rest.empty() && ahead.size() < kMessagesAhead) {
      v1::PutRowsRequest request;
      request.set_dataset(std::string(dataset));
      const size_t count = CountOfMessage(rest);
      for (const RowWrite& write : rest.first(count)) ToWire(write, *request.add_writes());
      rest = rest.subspan(count);
      sent += count;
      ahead.push_back(count);
      broken = !stream->Write(request);
    }
    v1::PutRowsResponse response;
    if (broken || !stream->Read(&response)) break;
    // Each message has one answer, in order.
    if (auto status = CheckCount(caller, static_cast<size_t>(response.results_size()), ahead.front());
        !status.ok()) {
      context.TryCancel();
      static_cast<void>(stream->Finish());
      return {.status = MarkInDoubt(status)};
    }
    ahead.pop_front();
    for (const auto& result : response.results()) results.push_back(FromResult(result));
  }
  if (!broken) stream->WritesDone();
  const grpc::Status status = stream->Finish();
  if (results.size() >= writes.size()) return {};
  if (status.ok()) return {.status = MarkInDoubt(CheckCount(caller, results.size(), writes.size()))};
  Caller::Verdict verdict = caller.Classify(status, OutcomeOf(context), /*writes=*/true);
  if (results.empty() && !IsInDoubt(verdict.status)) return verdict;
  while (results.size() < sent) results.emplace_back(verdict.status);
  // The rest was not sent.
  while (results.size() < writes.size()) {
    results.emplace_back(absl::UnavailableError("not sent: " + std::string(status.error_message())));
  }
  return {};
}

}  // namespace

// ---- single rows ----

absl::StatusOr<Row> Client::GetRow(std::string_view dataset, std::string_view row,
                                   const ReadOptions& options) {
  v1::GetRowRequest request;
  request.set_dataset(std::string(dataset));
  request.set_row(std::string(row));
  wire::ToWire(options, *request.mutable_options());
  v1::GetRowResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  return RowOf(*caller_, options, response);
}

absl::StatusOr<PutResult> Client::PutRow(std::string_view dataset, std::string_view row,
                                         std::span<const CellWrite> cells, const WriteOptions& options) {
  // The server would refuse too large a message with a less helpful error.
  if (auto status = ValidatePut(row, cells, options); !status.ok()) return status;
  v1::PutRowRequest request;
  request.set_dataset(std::string(dataset));
  request.set_row(std::string(row));
  wire::ToWire(cells, *request.mutable_cells());
  if (options.condition) wire::ToWire(*options.condition, *request.mutable_condition());
  request.set_sync(options.sync);
  v1::PutRowResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  PutResult result;
  if (response.has_timestamp()) result.timestamp = response.timestamp();
  return result;
}

absl::Status Client::DeleteRow(std::string_view dataset, std::string_view row, const DeleteOptions& options) {
  v1::DeleteRowRequest request;
  request.set_dataset(std::string(dataset));
  request.set_row(std::string(row));
  wire::ToWire(options, *request.mutable_options());
  v1::DeleteRowResponse response;
  return caller_->Call(request, response);
}

// ---- batches ----

absl::StatusOr<std::vector<absl::StatusOr<Row>>> Client::GetRows(std::string_view dataset,
                                                                 std::span<const RowRead> reads) {
  if (auto status = ValidateBatch(reads.size()); !status.ok()) return status;
  // One deadline for all messages.
  const CallScope scope(CallLimits{.deadline = caller_->Deadline()});
  std::vector<absl::StatusOr<Row>> rows;
  rows.reserve(reads.size());
  BatchBytes bytes;
  while (rows.size() < reads.size()) {
    if (bytes.full()) {
      rows.resize(reads.size(), BatchFullError());
      break;
    }
    const size_t end = rows.size() + CountOfMessage(reads.subspan(rows.size()));
    // Each attempt asks for the rows that the ones before did not bring.
    absl::Status invalid;
    const absl::Status status = caller_->Repeat([&](Caller::Try& attempt) {
      v1::GetRowsRequest request;
      request.set_dataset(std::string(dataset));
      for (size_t i = rows.size(); i < end; ++i) ToWire(reads[i], *request.add_reads());
      const auto stream = caller_->Stub().GetRows(&attempt.Context(), request);
      const auto add = [&](v1::GetRowsResponse::Result& result) {
        if (result.has_error()) {
          rows.emplace_back(wire::FromWire(result.error()));
        } else {
          rows.push_back(RowOf(*caller_, reads[rows.size()].options, result));
          if (rows.back().ok()) bytes.Add(rows.back()->items);
        }
      };
      invalid = ReadResults(*caller_, attempt, *stream, end, rows, bytes, add);
      return invalid.ok() && !bytes.full() ? stream->Finish() : grpc::Status::OK;
    });
    if (!status.ok()) return status;
    if (!invalid.ok()) return invalid;
    if (auto counted = CheckCount(*caller_, rows.size(), end); !counted.ok()) return counted;
  }
  return rows;
}

absl::StatusOr<std::vector<absl::StatusOr<Object>>> Client::GetObjects(std::string_view dataset,
                                                                       std::span<const uint64_t> ids,
                                                                       const ObjectReadOptions& options) {
  if (auto status = ValidateBatch(ids.size()); !status.ok()) return status;
  std::vector<absl::StatusOr<Object>> objects;
  objects.reserve(ids.size());
  BatchBytes bytes;
  absl::Status invalid;
  const absl::Status status = caller_->Repeat([&](Caller::Try& attempt) {
    v1::GetObjectsRequest request;
    request.set_dataset(std::string(dataset));
    for (size_t i = objects.size(); i < ids.size(); ++i) request.add_ids(ids[i]);
    request.set_include_inactive(options.include_inactive);
    const auto stream = caller_->Stub().GetObjects(&attempt.Context(), request);
    const auto add = [&](v1::GetObjectsResponse::Result& result) {
      if (result.has_error()) {
        objects.emplace_back(wire::FromWire(result.error()));
      } else if (result.object().id() != ids[objects.size()]) {
        objects.emplace_back(caller_->InvalidAnswerError("answered with another object"));
      } else {
        objects.emplace_back(wire::FromWire(*result.mutable_object()));
        bytes.Add(objects.back()->data.size());
      }
    };
    invalid = ReadResults(*caller_, attempt, *stream, ids.size(), objects, bytes, add);
    return invalid.ok() && !bytes.full() ? stream->Finish() : grpc::Status::OK;
  });
  if (!status.ok()) return status;
  if (!invalid.ok()) return invalid;
  if (auto counted = CheckCount(*caller_, objects.size(), ids.size()); !counted.ok()) return counted;
  return objects;
}

absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> Client::PutRows(std::string_view dataset,
                                                                       std::span<const RowWrite> writes) {
  if (auto status = ValidateBatch(writes.size()); !status.ok()) return status;
  std::vector<absl::StatusOr<PutResult>> results;
  results.reserve(writes.size());
  // Invalid entries are answered here, because they may be too large to send.
  std::vector<absl::Status> problems;
  std::vector<RowWrite> valid;
  for (const RowWrite& write : writes) {
    problems.push_back(ValidatePut(write.row, write.cells, write.options));
    if (problems.back().ok()) valid.push_back(write);
  }
  std::vector<absl::StatusOr<PutResult>> sent;
  sent.reserve(valid.size());
  if (valid.empty()) {
    if (auto found = GetDataset(dataset); !found.ok()) return found.status();
  } else if (CountOfMessage(std::span<const RowWrite>(valid)) == valid.size()) {
    v1::PutRowsRequest request;
    request.set_dataset(std::string(dataset));
    for (const RowWrite& write : valid) ToWire(write, *request.add_writes());
    v1::PutRowsResponse response;
    if (auto status = caller_->Call(request, response); !status.ok()) return status;
    if (auto status = CheckCount(*caller_, static_cast<size_t>(response.results_size()), valid.size());
        !status.ok()) {
      return MarkInDoubt(std::move(status));
    }
    for (const auto& result : response.results()) sent.push_back(FromResult(result));
  } else if (auto status = Import(dataset, valid, sent); !status.ok()) {
    return status;
  }
  size_t next = 0;
  for (absl::Status& problem : problems) {
    results.push_back(problem.ok() ? std::move(sent[next++]) : absl::StatusOr<PutResult>(std::move(problem)));
  }
  return results;
}

absl::Status Client::Import(std::string_view dataset, std::span<const RowWrite> writes,
                            std::vector<absl::StatusOr<PutResult>>& results) {
  // ConnectOptions::deadline_ms is not for imports: a server that limits its caller's bytes a second holds
  // their messages for as long as that takes.
  const auto deadline = CallScope::Current().deadline;
  // Without a deadline the import gives up after so many refusals.
  constexpr int kMaxRefusals = 12;
  for (int refusals = 0;; ++refusals) {
    if (auto status = CheckCall(); !status.ok()) return status;
    const Caller::Verdict verdict = ImportOnce(*caller_, dataset, writes, results);
    const bool refused = verdict.retry && results.empty() && !IsInDoubt(verdict.status);
    if (!refused || refusals == kMaxRefusals || !caller_->Pause(refusals, deadline)) return verdict.status;
  }
}

absl::StatusOr<std::vector<absl::Status>> Client::DeleteRows(std::string_view dataset,
                                                             std::span<const RowDelete> deletes) {
  if (auto status = ValidateBatch(deletes.size()); !status.ok()) return status;
  // One deadline for all messages.
  const CallScope scope(CallLimits{.deadline = caller_->Deadline()});
  std::vector<absl::Status> results;
  results.reserve(deletes.size());
  while (results.size() < deletes.size()) {
    const auto rest = deletes.subspan(results.size());
    const size_t count = CountOfMessage(rest);
    v1::DeleteRowsRequest request;
    request.set_dataset(std::string(dataset));
    for (const RowDelete& one : rest.first(count)) ToWire(one, *request.add_deletes());
    v1::DeleteRowsResponse response;
    absl::Status status = caller_->Call(request, response);
    if (status.ok()) {
      status = CheckCount(*caller_, static_cast<size_t>(response.results_size()), count);
      // The server has carried something out.
      if (!status.ok()) status = MarkInDoubt(std::move(status));
    }
    if (!status.ok() && results.empty()) return status;
    absl::Status migrating;
    for (size_t i = 0; i < count; ++i) {
      if (!status.ok()) {
        results.push_back(status);
      } else {
        const auto& result = response.results(static_cast<int>(i));
        results.push_back(result.has_error() ? wire::FromWire(result.error()) : absl::OkStatus());
      }
      if (IsMigrating(results.back())) migrating = results.back();
    }
    // Nothing after it is sent: a delete that is retried must not come after a later one of the same row.
    if (!migrating.ok()) results.resize(deletes.size(), migrating);
    if (!status.ok()) {
      results.resize(deletes.size(), absl::UnavailableError("not sent: " + std::string(status.message())));
    }
  }
  return results;
}

// ---- scans ----

absl::StatusOr<std::unique_ptr<RowCursor>> Client::ScanRows(std::string_view dataset, const RowRange& range,
                                                            const ScanOptions& options) {
  v1::ScanRowsRequest request;
  request.set_dataset(std::string(dataset));
  wire::ToWire(range, *request.mutable_range());
  wire::ToWire(options, request);
  auto cursor = std::make_unique<Cursor>(*caller_, std::move(request));
  // Opened here, so that mistakes are reported by this call, as by a store in process.
  if (auto status = cursor->Open(); !status.ok()) return status;
  return cursor;
}

absl::StatusOr<std::vector<Partition>> Client::ListPartitions(std::string_view dataset, size_t wanted) {
  v1::ListPartitionsRequest request;
  request.set_dataset(std::string(dataset));
  request.set_wanted(static_cast<uint32_t>(std::min<size_t>(wanted, UINT32_MAX)));
  v1::ListPartitionsResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  std::vector<Partition> partitions;
  for (const auto& partition : response.partitions()) {
    partitions.push_back(
        {partition.name(), wire::FromWire(partition.range()), wire::FromWire(partition.ids())});
  }
  return partitions;
}

}  // namespace kvstore::client
