#include "reports/batch_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/big_endian.h"
#include "kvstore_api/call_scope.h"
#include "reports/chunk_number.h"
#include "reports/report_types.h"
#include "reports/row_cells.h"
#include "reports/row_key.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// Counter and random bytes.
constexpr size_t kEndBytes = kChunkNumberBytes - kChunkTimeBytes;
constexpr size_t kHashBytes = sizeof(uint64_t);
/// Batches that one delete removes.
constexpr size_t kBatchesOfDelete = 10'000;
constexpr uint32_t kBatchesOfPage = 10'000;

/// The first attempt of a batch, as it is stored.
absl::StatusOr<Cell> ReadBatch(const Metadata& metadata, const std::string& row, std::string_view batch) {
  const CellsWanted wanted{row, {std::string(batch)}};
  KV_ASSIGN_OR_RETURN(auto answers, ReadCells(metadata.store(), metadata.dataset(), {&wanted, 1}));
  if (!answers.front().ok()) return answers.front().status();
  const auto found = answers.front()->find(std::string(batch));
  if (found == answers.front()->end()) {
    return absl::UnavailableError(fmt::format(
        "batch '{}': a compaction has forgotten it just now, because it is more than {} days old; "
        "written again, it counts again",
        batch, kBatchMemoryMs / 86'400'000));
  }
  if (found->second.value.size() != kEndBytes + kHashBytes) {
    return absl::DataLossError(fmt::format("batch '{}': what is stored of it has {} bytes instead of {}",
                                           batch, found->second.value.size(), kEndBytes + kHashBytes));
  }
  return std::move(found->second);
}

/// The ID of a batch, and the timestamp of its first attempt.
struct KnownBatch {
  std::string id;
  uint64_t timestamp = 0;
};

absl::StatusOr<std::vector<KnownBatch>> AllBatches(const Metadata& metadata, const std::string& row) {
  std::vector<KnownBatch> all;
  ReadOptions options{.limit = kBatchesOfPage};
  do {
    KV_RETURN_IF_ERROR(CheckCall());
    KV_ASSIGN_OR_RETURN(Row page, metadata.store().GetRow(metadata.dataset(), row, options));
    for (Item& item : page.items) all.push_back({std::move(item.column), item.cells.front().timestamp});
    options.marker = std::move(page.marker);
  } while (!options.marker.empty());
  return all;
}

}  // namespace

absl::StatusOr<std::string> NumberOfBatch(const Metadata& metadata, uint32_t report, std::string_view batch,
                                          uint64_t hash) {
  KV_RETURN_IF_ERROR(CheckName("batch", batch, kMaxReportNameBytes));
  const std::string row = BatchesRow(report);
  Cell cell{.value = NewChunkNumber().substr(kChunkTimeBytes)};
  AppendBigEndian(cell.value, hash);
  const CellWrite write{batch, cell.value, std::nullopt};
  const WriteOptions absent{.condition = Condition{.column = batch}};
  const auto put = metadata.store().PutRow(metadata.dataset(), row, {&write, 1}, absent);
  if (put.ok()) {
    cell.timestamp = put->timestamp.value_or(0);
  } else {
    if (!absl::IsAlreadyExists(put.status())) return put.status();
    KV_ASSIGN_OR_RETURN(cell, ReadBatch(metadata, row, batch));
  }
  if (ReadBigEndian<uint64_t>(std::string_view(cell.value).substr(kEndBytes)) != hash) {
    return absl::FailedPreconditionError(
        fmt::format("batch '{}': it was written before with other points; repeat it with the same points, or "
                    "write these under another ID",
                    batch));
  }
  return LeastChunkNumber(cell.timestamp).substr(0, kChunkTimeBytes) + cell.value.substr(0, kEndBytes);
}

absl::StatusOr<uint64_t> ForgetBatches(const Metadata& metadata, uint32_t report) {
  const std::string row = BatchesRow(report);
  KV_ASSIGN_OR_RETURN(const std::vector<KnownBatch> all, AllBatches(metadata, row));
  uint64_t newest = 0;
  for (const KnownBatch& batch : all) newest = std::max(newest, batch.timestamp);
  const uint64_t since = newest - std::min(newest, kBatchMemoryMs);
  std::vector<std::string> old;
  for (const KnownBatch& batch : all) {
    if (batch.timestamp < since) old.push_back(batch.id);
  }
  for (size_t begin = 0; begin < old.size(); begin += kBatchesOfDelete) {
    KV_RETURN_IF_ERROR(CheckCall());
    const auto first = old.begin() + static_cast<ptrdiff_t>(begin);
    const auto count = static_cast<ptrdiff_t>(std::min(kBatchesOfDelete, old.size() - begin));
    KV_RETURN_IF_ERROR(metadata.store().DeleteRow(
        metadata.dataset(), row, {.columns = std::vector<std::string>(first, first + count)}));
  }
  return since;
}

}  // namespace kvstore::reports
