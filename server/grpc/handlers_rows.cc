#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backend_api/batch_bytes.h"
#include "backend_api/end_of_wait.h"
#include "backend_api/outcome.h"
#include "backend_api/scan_budget.h"
#include "backend_api/validate.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "server/grpc/handlers.h"
#include "wire/convert.h"
#include "wire/packed_items.h"
#include "wire/packed_rows.h"

namespace kvstore::server {
namespace {

/// A message of a scan is sent when it has so many bytes of rows.
constexpr size_t kScanMessageBytes = size_t{256} << 10;
/// After looking at so many cells a message of a scan is sent as it is, also without rows. So a scan that
/// finds nothing takes turns with other calls, and the server notices when its client is gone.
constexpr uint64_t kScanMessageBudget = 20'000;
/// The page of each row of a batch.
constexpr size_t kMaxRowOfBatchBytes = size_t{256} << 10;
/// How many rows of a batch are read together at first; later as many as fill kBatchMessageBytes.
constexpr size_t kFirstRows = 100;
constexpr size_t kMaxRows = 2'000;

ReadOptions ReadOptionsOf(const v1::ReadOptions& message) {
  ReadOptions options = wire::FromWire(message);
  // A value beyond kMaxPageBytes is a mistake, which the store reports.
  if (options.max_bytes <= kMaxPageBytes) options.max_bytes = std::min(options.max_bytes, kMaxWireBytes);
  return options;
}

template <typename Message>
WriteOptions WriteOptionsOf(const Message& message) {
  WriteOptions options{.sync = message.sync()};
  if (message.has_condition()) options.condition = wire::FromWire(message.condition());
  return options;
}

const absl::Status& StatusOf(const absl::Status& status) { return status; }
const absl::Status& StatusOf(const absl::StatusOr<PutResult>& result) { return result.status(); }

template <typename Result>
void Answer(const Result& result, auto& message) {
  message.Clear();
  if (!result.ok()) wire::ToWire(StatusOf(result), *message.mutable_error());
  if constexpr (!std::is_same_v<Result, absl::Status>) {
    if (result.ok() && result->timestamp) message.set_timestamp(*result->timestamp);
  }
}

/// Carries out a batch of writes, or what is left of it.
///
/// add   Adds an entry to those that `send` will carry out.
/// send  Carries the added entries out, and returns their results.
template <typename Entries, typename Messages, typename Add, typename Send>
absl::Status HandleBatch(const Entries& entries, Messages& messages, Unfinished* unfinished, const Add& add,
                         const Send& send) {
  const std::vector<size_t> left =
      unfinished == nullptr ? std::vector<size_t>() : std::exchange(unfinished->places, {});
  if (left.empty()) {
    for (const auto& entry : entries) add(entry);
  } else {
    for (const size_t place : left) add(entries[static_cast<int>(place)]);
  }
  const auto results = send();
  if (!results.ok() && left.empty()) return results.status();
  // A batch that goes on has answered some entries already, so each entry that is left gets the error, with
  // what it waited for if its time was up.
  absl::Status failed = results.status();
  if (!failed.ok() && unfinished != nullptr && !CheckCall().ok()) {
    failed = EndOfWait(failed, std::string(unfinished->migrating.message()));
  }
  if (left.empty()) messages.Reserve(entries.size());
  if (unfinished != nullptr) unfinished->migrating = absl::OkStatus();
  const size_t count = left.empty() ? results->size() : left.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t place = left.empty() ? i : left[i];
    auto& message = left.empty() ? *messages.Add() : messages[static_cast<int>(place)];
    if (!results.ok()) {
      Answer(failed, message);
      continue;
    }
    const auto& result = (*results)[i];
    Answer(result, message);
    if (result.ok() || unfinished == nullptr || !IsMigrating(StatusOf(result)) || IsInDoubt(StatusOf(result)))
      continue;
    if (unfinished->places.empty()) unfinished->migrating = StatusOf(result);
    unfinished->places.push_back(place);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Handle(KVStore& store, const v1::GetRowRequest& request, v1::GetRowResponse& response) {
  auto row = store.GetRow(request.dataset(), request.row(), ReadOptionsOf(request.options()));
  if (!row.ok()) return row.status();
  wire::ItemsToWire(row->items, wire::SizeOf(row->items), request.options().packed(), response);
  response.set_marker(std::move(row->marker));
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::PutRowRequest& request, v1::PutRowResponse& response) {
  const auto cells = wire::FromWire(request.cells());
  const auto result = store.PutRow(request.dataset(), request.row(), cells, WriteOptionsOf(request));
  if (!result.ok()) return result.status();
  if (result->timestamp) response.set_timestamp(*result->timestamp);
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::DeleteRowRequest& request, v1::DeleteRowResponse&) {
  return store.DeleteRow(request.dataset(), request.row(), wire::FromWire(request.options()));
}

absl::Status Handle(KVStore& store, const v1::PutRowsRequest& request, v1::PutRowsResponse& response,
                    Unfinished* unfinished) {
  std::vector<std::vector<CellWrite>> cells;
  std::vector<RowWrite> writes;
  cells.reserve(static_cast<size_t>(request.writes_size()));
  writes.reserve(static_cast<size_t>(request.writes_size()));
  const auto add = [&](const v1::RowWrite& write) {
    cells.push_back(wire::FromWire(write.cells()));
    writes.push_back({write.row(), cells.back(), WriteOptionsOf(write)});
  };
  const auto send = [&] { return store.PutRows(request.dataset(), writes); };
  return HandleBatch(request.writes(), *response.mutable_results(), unfinished, add, send);
}

absl::Status Handle(KVStore& store, const v1::DeleteRowsRequest& request, v1::DeleteRowsResponse& response,
                    Unfinished* unfinished) {
  std::vector<RowDelete> deletes;
  deletes.reserve(static_cast<size_t>(request.deletes_size()));
  const auto add = [&](const v1::RowDelete& one) {
    deletes.push_back({one.row(), wire::FromWire(one.options())});
  };
  const auto send = [&] { return store.DeleteRows(request.dataset(), deletes); };
  return HandleBatch(request.deletes(), *response.mutable_results(), unfinished, add, send);
}

absl::Status Handle(KVStore& store, const v1::ListPartitionsRequest& request,
                    v1::ListPartitionsResponse& response) {
  const auto partitions = store.ListPartitions(request.dataset(), request.wanted());
  if (!partitions.ok()) return partitions.status();
  for (const Partition& partition : *partitions) {
    auto& message = *response.add_partitions();
    message.set_name(partition.name);
    wire::ToWire(partition.range, *message.mutable_range());
    if (partition.ids != IdRange()) wire::ToWire(partition.ids, *message.mutable_ids());
  }
  return absl::OkStatus();
}

// ---- streams ----

namespace {

/// Adds a row to a message of a scan, and its size to `bytes`, which is 0 before the first row.
void AddRow(ScannedRow& row, const v1::ScanRowsRequest& request, v1::ScanRowsResponse& response,
            size_t& bytes) {
  const wire::ItemsSize items = wire::SizeOf(row.items);
  if (bytes == 0 && request.packed_rows() && wire::WorthPackingRows(items)) response.mutable_packed();
  bytes += row.key.size() + items.in_message();
  if (response.has_packed()) {
    wire::AddRow(row.key, row.items, *response.mutable_packed());
    response.mutable_packed()->set_continues(row.continues);
    return;
  }
  auto& message = *response.add_rows();
  message.set_key(row.key);
  wire::ItemsToWire(row.items, items, request.packed(), message);
  message.set_continues(row.continues);
}

}  // namespace

Producer<v1::GetRowsResponse> Produce(KVStore& store, const v1::GetRowsRequest& request) {
  return [&store, &request, done = size_t{0}, together = kFirstRows](
             v1::GetRowsResponse& response, absl::Status* migrating) mutable -> absl::StatusOr<bool> {
    const auto size = static_cast<size_t>(request.reads_size());
    if (done == 0) {
      if (auto status = ValidateBatch(size); !status.ok()) return status;
    }
    if (done == size) return false;
    std::vector<RowRead> reads;
    for (size_t i = done; i < std::min(size, done + together); ++i) {
      const v1::RowRead& read = request.reads(static_cast<int>(i));
      reads.push_back({read.row(), ReadOptionsOf(read.options())});
      // Many large rows together must stay below what one message may have.
      ReadOptions& options = reads.back().options;
      if (size > 1 && options.max_bytes > 0 && options.max_bytes <= kMaxPageBytes) {
        options.max_bytes = std::min(options.max_bytes, kMaxRowOfBatchBytes);
      }
    }
    const SmallBatches pieces(kBatchMessageBytes);
    auto rows = store.GetRows(request.dataset(), reads);
    if (!rows.ok()) return rows.status();
    size_t bytes = 0;
    for (absl::StatusOr<Row>& row : *rows) {
      // Read together with the others this row was too much. It is the first of the next message.
      if (IsPaused(row.status()) && response.results_size() > 0) break;
      if (migrating != nullptr && IsMigrating(row.status())) {
        // The next message begins with this row, and reads it alone for as long as the dataset migrates.
        together = 1;
        if (response.results_size() == 0) *migrating = row.status();
        return response.results_size() > 0;
      }
      auto& message = *response.add_results();
      ++done;
      if (!row.ok()) {
        wire::ToWire(row.status(), *message.mutable_error());
        continue;
      }
      const wire::ItemsSize items = wire::SizeOf(row->items);
      bytes += items.in_message();
      message.set_marker(std::move(row->marker));
      const bool packs = request.reads(static_cast<int>(done - 1)).options().packed();
      wire::ItemsToWire(row->items, items, packs, message);
      // The other rows that were read are read again for the next message.
      if (bytes > kMaxWireBytes) break;
    }
    const size_t average = bytes / static_cast<size_t>(response.results_size()) + 1;
    together = std::clamp<size_t>(kBatchMessageBytes / average, 1, kMaxRows);
    return true;
  };
}

Producer<v1::ScanRowsResponse> Produce(KVStore& store, const v1::ScanRowsRequest& request) {
  return [&store, &request, cursor = std::shared_ptr<RowCursor>(), left = request.limit(), ended = false](
             v1::ScanRowsResponse& response, absl::Status* migrating) mutable -> absl::StatusOr<bool> {
    if (ended) return false;
    if (!cursor) {
      const auto spec = store.GetDataset(request.dataset());
      if (!spec.ok()) return spec.status();
      ScanOptions options = wire::FromWire(request);
      if (options.max_bytes <= kMaxPageBytes) options.max_bytes = std::min(options.max_bytes, kMaxWireBytes);
      auto opened = store.ScanRows(request.dataset(), wire::FromWire(request.range()), options);
      if (migrating != nullptr && IsMigrating(opened.status())) {
        *migrating = opened.status();
        return false;
      }
      if (!opened.ok()) return opened.status();
      cursor = *std::move(opened);
      response.set_incarnation(spec->incarnation);
    }
    size_t bytes = 0;
    bool paused = false;
    ScannedRow row;
    const ScanBudget budget(kScanMessageBudget);
    while (bytes < kScanMessageBytes) {
      auto more = cursor->Next(row);
      paused = IsPaused(more.status());
      if (paused) break;
      if (!more.ok()) return more.status();
      if (!*more) {
        ended = true;
        break;
      }
      AddRow(row, request, response, bytes);
      if (row.continues) break;
      if (request.limit() > 0 && --left == 0) {
        ended = true;
        break;
      }
    }
    response.set_marker(cursor->marker());
    return bytes > 0 || response.incarnation() != 0 || paused;
  };
}

}  // namespace kvstore::server
