#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "kvstore_api/kvstore.h"
#include "tests/support/no_store.h"

namespace kvstore::testing {

/// A store of rows in memory, with one version of each column, for tests of what is built on the API. It
/// gives small pages and leaves rows of batches over, as a real one may, and counts what is asked of it.
/// Thread-safe.
class MemoryStore : public NoStore {
 public:
  struct Counts {
    uint64_t columns_named = 0;  ///< In reads.
    uint64_t rows_read = 0;      ///< By key.
    uint64_t bytes_read = 0;
    uint64_t scans = 0;
  };
  Counts counts() const;
  void ResetCounts();

  /// Makes the timestamps of later writes greater by so much. They begin in 1970, whatever time it is.
  void AdvanceClock(uint64_t ms);

  /// Called before each write of a row, without a lock; an error fails that write.
  std::function<absl::Status(std::string_view row)> before_write;
  /// Called for each read of a row by its key; an error fails it.
  std::function<absl::Status(std::string_view row)> before_read;
  /// Called for each scan that is begun or gone on with; an error fails it.
  std::function<absl::Status(const ScanOptions& options)> before_scan;
  /// Columns of a page.
  size_t page_columns = 3;
  /// Rows of a batch that are read; the others are left over.
  size_t batch_rows = 5;

  absl::Status CreateDataset(const DatasetSpec& spec) override;
  absl::Status DropDataset(std::string_view dataset, const DropOptions& options) override;
  absl::StatusOr<Row> GetRow(std::string_view dataset, std::string_view row,
                             const ReadOptions& options) override;
  absl::StatusOr<PutResult> PutRow(std::string_view dataset, std::string_view row,
                                   std::span<const CellWrite> cells, const WriteOptions& options) override;
  absl::Status DeleteRow(std::string_view dataset, std::string_view row,
                         const DeleteOptions& options) override;
  absl::StatusOr<std::vector<absl::StatusOr<Row>>> GetRows(std::string_view dataset,
                                                           std::span<const RowRead> reads) override;
  absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> PutRows(std::string_view dataset,
                                                                 std::span<const RowWrite> writes) override;
  absl::StatusOr<std::unique_ptr<RowCursor>> ScanRows(std::string_view dataset, const RowRange& range,
                                                      const ScanOptions& options) override;

 private:
  using Columns = std::map<std::string, Cell, std::less<>>;
  using Rows = std::map<std::string, Columns, std::less<>>;
  class Cursor;

  absl::StatusOr<Rows*> Find(std::string_view dataset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Rows, std::less<>> datasets_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 1'000;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::testing
