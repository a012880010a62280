#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "backends/mysql/dataset.h"
#include "backends/mysql/fleet.h"
#include "backends/mysql/row_reader.h"
#include "kvstore_api/row_store.h"

namespace kvstore::mysql {

/// Walks the rows of one shard, or of one shard after another, in order of keys within each. Each statement
/// lists so many cells; the rows that it has whole are returned as they are, others are read on their own.
/// Externally synchronised.
class MySqlRowScan : public RowScan {
 public:
  static absl::StatusOr<std::unique_ptr<RowScan>> Open(std::shared_ptr<Fleet> fleet,
                                                       std::shared_ptr<const Dataset> dataset,
                                                       const RowRange& range, const ScanOptions& options,
                                                       const std::optional<ScanPosition>& after);

  absl::StatusOr<bool> Next(ScannedRow& row) override;
  std::optional<ScanPosition> position() const override { return position_; }

 private:
  /// A row that was listed: with its items, or to be read on its own, from `after` on.
  struct Listed {
    std::string key;
    std::vector<Item> items;
    bool read_alone = false;
    std::optional<RowPosition> after;
  };

  MySqlRowScan(std::shared_ptr<Fleet> fleet, std::shared_ptr<const Dataset> dataset, RowRange range,
               const ScanOptions& options);

  RowQuery Query(uint64_t lowest_live);
  absl::Status Fetch();
  void Take(std::string key, std::vector<ListedCell> cells, const RowQuery& query);

  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<const Dataset> dataset_;
  const RowRange range_;
  const ReadOptions options_;  // of each row
  std::optional<std::vector<std::string>> columns_;
  uint32_t shard_ = 0;
  uint32_t last_shard_ = 0;
  std::string passed_;  // the last row that was listed and done with; empty before
  std::string from_;    // the shard's first row that was not listed
  bool shard_done_ = false;
  std::deque<Listed> listed_;
  std::optional<ScanPosition> position_;
};

}  // namespace kvstore::mysql
