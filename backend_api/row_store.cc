#include "backend_api/row_store.h"

#include "backend_api/batch_bytes.h"
#include "backend_api/outcome.h"
#include "kvstore_api/call_scope.h"

namespace kvstore {
namespace {

absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename Result>
absl::Status StatusOf(const absl::StatusOr<Result>& result) {
  return result.status();
}

/// Carries out one write after the other. Once a write was refused because the dataset migrates, all after
/// it get the same error: the router repeats refused writes, so a later one, which could be of the same row,
/// must not be made before.
template <typename Result, typename Write, typename Carry>
std::vector<Result> OneByOne(std::span<const Write> writes, const Carry& carry) {
  std::vector<Result> results;
  results.reserve(writes.size());
  for (const Write& write : writes) {
    absl::Status status = CheckCall();
    if (status.ok() && !results.empty() && IsMigrating(StatusOf(results.back())))
      status = StatusOf(results.back());
    results.push_back(status.ok() ? carry(write) : Result(status));
  }
  return results;
}

}  // namespace

std::vector<absl::StatusOr<RowPage>> RowStore::GetMany(std::span<const RowRead> reads) {
  std::vector<absl::StatusOr<RowPage>> pages;
  pages.reserve(reads.size());
  BatchBytes bytes;
  for (const RowRead& read : reads) {
    const absl::Status status = bytes.full() ? BatchFullError() : CheckCall();
    pages.push_back(status.ok() ? Get(read.row, read.options, std::nullopt)
                                : absl::StatusOr<RowPage>(status));
    if (pages.back().ok()) bytes.Add(pages.back()->items);
  }
  return pages;
}

std::vector<absl::StatusOr<PutResult>> RowStore::PutMany(std::span<const RowWrite> writes) {
  return OneByOne<absl::StatusOr<PutResult>>(
      writes, [this](const RowWrite& write) { return Put(write.row, write.cells, write.options); });
}

std::vector<absl::Status> RowStore::DeleteMany(std::span<const RowDelete> deletes) {
  return OneByOne<absl::Status>(deletes,
                                [this](const RowDelete& one) { return Delete(one.row, one.options); });
}

}  // namespace kvstore
