#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_api/row_store.h"
#include "tests/migration/wrapped.h"

namespace kvstore::testing {

/// Called before each access to a row, by the thread that makes it, within the limits of its call: reads,
/// writes and deletes of a row, and each step of a scan. Thread-safe.
using WatchRows = std::function<void()>;

/// The rows of another store, all accesses to which are watched.
class WatchedRows : public RowStore {
 public:
  WatchedRows(std::shared_ptr<RowStore> rows, WatchRows watch)
      : rows_(std::move(rows)), watch_(std::move(watch)) {}

  absl::StatusOr<RowPage> Get(std::string_view row, const ReadOptions& options,
                              const std::optional<RowPosition>& after) override {
    watch_();
    return rows_->Get(row, options, after);
  }
  absl::StatusOr<PutResult> Put(std::string_view row, std::span<const CellWrite> cells,
                                const WriteOptions& options) override {
    watch_();
    return rows_->Put(row, cells, options);
  }
  absl::Status Delete(std::string_view row, const DeleteOptions& options) override {
    watch_();
    return rows_->Delete(row, options);
  }
  absl::StatusOr<std::vector<Partition>> Partitions(size_t wanted) override {
    return rows_->Partitions(wanted);
  }
  absl::StatusOr<std::unique_ptr<RowScan>> Scan(const RowRange& range, const ScanOptions& options,
                                                const std::optional<ScanPosition>& after) override {
    auto scan = rows_->Scan(range, options, after);
    if (!scan.ok()) return scan.status();
    return std::make_unique<WatchedScan>(*std::move(scan), watch_);
  }

 private:
  class WatchedScan : public RowScan {
   public:
    WatchedScan(std::unique_ptr<RowScan> scan, WatchRows watch)
        : scan_(std::move(scan)), watch_(std::move(watch)) {}
    absl::StatusOr<bool> Next(ScannedRow& row) override {
      watch_();
      return scan_->Next(row);
    }
    std::optional<ScanPosition> position() const override { return scan_->position(); }

   private:
    const std::unique_ptr<RowScan> scan_;
    const WatchRows watch_;
  };

  const std::shared_ptr<RowStore> rows_;
  const WatchRows watch_;
};

/// Another backend, whose rows are watched.
class WatchedBackend : public WrappedBackend {
 public:
  WatchedBackend(std::shared_ptr<Backend> inner, WatchRows watch)
      : WrappedBackend(std::move(inner), nullptr), watch_(std::move(watch)) {}
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override {
    auto rows = WrappedBackend::OpenRows(spec);
    if (!rows.ok()) return rows.status();
    return std::make_shared<WatchedRows>(*std::move(rows), watch_);
  }

 private:
  const WatchRows watch_;
};

}  // namespace kvstore::testing
