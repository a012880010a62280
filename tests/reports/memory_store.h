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

namespace kvstore::testing {

/// A store of rows in memory, with one version of each column, for tests of what is built on the API. It
/// gives small pages and leaves rows of batches over, as a real one may, and counts what is asked of it.
/// Thread-safe.
class MemoryStore : public KVStore {
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

  // What reports do not use.
  absl::Status AlterDataset(std::string_view, const DatasetChange&) override { return No(); }
  absl::StatusOr<DatasetSpec> GetDataset(std::string_view) override { return No(); }
  absl::StatusOr<std::vector<DatasetSpec>> ListDatasets() override { return No(); }
  absl::StatusOr<DatasetStats> GetStats(std::string_view) override { return No(); }
  absl::StatusOr<ReclaimResult> Compact(std::string_view, const Progress&) override { return No(); }
  absl::StatusOr<std::vector<absl::Status>> DeleteRows(std::string_view,
                                                       std::span<const RowDelete>) override {
    return No();
  }
  absl::StatusOr<std::vector<Partition>> ListPartitions(std::string_view, size_t) override { return No(); }
  absl::StatusOr<uint64_t> CreateObject(std::string_view, std::string_view, const CreateOptions&) override {
    return No();
  }
  absl::StatusOr<Object> GetObject(std::string_view, uint64_t, const ObjectReadOptions&) override {
    return No();
  }
  absl::StatusOr<std::vector<absl::StatusOr<Object>>> GetObjects(std::string_view, std::span<const uint64_t>,
                                                                 const ObjectReadOptions&) override {
    return No();
  }
  absl::StatusOr<Object> UpdateObject(std::string_view, uint64_t, const ObjectTransform&,
                                      const UpdateOptions&) override {
    return No();
  }
  absl::StatusOr<Object> PatchObject(std::string_view, uint64_t, std::string_view,
                                     const UpdateOptions&) override {
    return No();
  }
  absl::Status DeleteObject(std::string_view, uint64_t, bool) override { return No(); }
  absl::Status AddMapping(std::string_view, uint64_t, uint64_t, std::optional<uint64_t>) override {
    return No();
  }
  absl::StatusOr<bool> RemoveMapping(std::string_view, uint64_t, uint64_t) override { return No(); }
  absl::StatusOr<MappingPage> ListMapping(std::string_view, uint64_t, const MappingListOptions&) override {
    return No();
  }
  absl::StatusOr<uint64_t> CountMapping(std::string_view, uint64_t) override { return No(); }
  absl::StatusOr<JoinedPage> ListObjects(std::string_view, uint64_t, const MappingListOptions&) override {
    return No();
  }

 private:
  using Columns = std::map<std::string, Cell, std::less<>>;
  using Rows = std::map<std::string, Columns, std::less<>>;
  class Cursor;

  static absl::Status No() { return absl::UnimplementedError("the memory store has rows only"); }
  absl::StatusOr<Rows*> Find(std::string_view dataset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Rows, std::less<>> datasets_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 1'000;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::testing
