#pragma once

#include <rocksdb/iterator.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/rocksdb/engine.h"
#include "backends/rocksdb/row_reader.h"
#include "kvstore_api/row_store.h"

namespace kvstore::rocks {

/// A scan over a range of rows, as they were when it began.
class RocksRowScan : public RowScan {
 public:
  RocksRowScan(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family, const RowRange& range,
               const ScanOptions& options, const std::optional<ScanPosition>& after);

  absl::StatusOr<bool> Next(ScannedRow& row) override;
  std::optional<ScanPosition> position() const override;

 private:
  absl::StatusOr<bool> FindRow(std::string& key);
  void SkipRow();
  void GoOnBefore(const std::string& row);
  void GoOnAt(const std::string& stored);

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
  bool started_ = false;               // the scan goes on behind, or inside, key_
  bool again_ = false;                 // the current row was not read to its end, and is to be read again
  std::optional<RowPosition> inside_;  // the current row goes on here
};

}  // namespace kvstore::rocks
