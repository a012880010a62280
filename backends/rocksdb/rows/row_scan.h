#pragma once

#include <rocksdb/iterator.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend_api/row_store.h"
#include "backends/rocksdb/engine/engine.h"
#include "backends/rocksdb/rows/row_reader.h"

namespace kvstore::rocks {

/// A scan over a range of rows, as they were when it began. Externally synchronised.
class RocksRowScan : public RowScan {
 public:
  RocksRowScan(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family, const RowRange& range,
               const ScanOptions& options, const std::optional<ScanPosition>& after);

  absl::StatusOr<bool> Next(ScannedRow& row) override;
  std::optional<ScanPosition> position() const override;

 private:
  /// Moves to the next row and sets `key`; returns false at the end of the range.
  absl::StatusOr<bool> FindRow(std::string& key);
  void SkipRow();
  void ResumeBefore(const std::string& row);
  void ResumeAt(const std::string& stored);

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Family> family_;
  const std::vector<std::string> columns_;
  const std::string start_;
  const std::string upper_bound_;
  const rocksdb::Slice upper_bound_slice_;
  RowQuery query_;
  std::unique_ptr<rocksdb::Iterator> it_;
  std::unique_ptr<RowReader> reader_;
  std::string row_;                    // enc(row) of the current row
  std::string key_;                    // decoded
  bool started_ = false;               // position() is after, or inside, the row key_
  bool reread_row_ = false;            // the read of the current row failed, and is to be repeated
  std::optional<RowPosition> inside_;  // where the current row goes on
};

}  // namespace kvstore::rocks
