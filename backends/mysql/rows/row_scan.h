#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "backend_api/row_store.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"
#include "backends/mysql/rows/row_reader.h"

namespace kvstore::mysql {

/// Walks the rows of one shard, or of one shard after another, in the order of their keys within each. A
/// statement lists a fixed number of cells: rows of which it has all cells that are needed are returned from
/// the list, the others are read by statements of their own. Where only some cells are wanted, of named
/// columns or of a time range, a statement could read the whole shard to find as many; so it is given a
/// window of rows, and the limits of the call are checked between windows. Externally synchronised.
class MySqlRowScan : public RowScan {
 public:
  /// Begins a scan; reads nothing yet. The arguments are those of RowStore::Scan. INVALID_ARGUMENT if the
  /// range names a shard that there is not, or `after` is of another one.
  static absl::StatusOr<std::unique_ptr<RowScan>> Open(std::shared_ptr<Fleet> fleet,
                                                       std::shared_ptr<const Dataset> dataset,
                                                       const RowRange& range, const ScanOptions& options,
                                                       const std::optional<ScanPosition>& after);

  absl::StatusOr<bool> Next(ScannedRow& row) override;
  std::optional<ScanPosition> position() const override { return position_; }

 private:
  /// A row that was listed: either with its items, or to be read on its own, from `after` on.
  struct Listed {
    std::string key;
    std::vector<Item> items;
    bool read_alone = false;
    std::optional<RowPosition> after;
  };

  MySqlRowScan(std::shared_ptr<Fleet> fleet, std::shared_ptr<const Dataset> dataset, RowRange range,
               const ScanOptions& options);

  /// Returns what to read of each row; sets columns_.
  PageQuery Query(uint64_t lowest_live);
  /// Lists the next cells of the current shard, and adds their rows to listed_.
  absl::Status Fetch();
  /// Returns the last row of the window that begins at from_: the row of the last cell of a number that one
  /// statement may read, so that a row of any width is in one window.
  std::string WindowEnd(Connection& connection) const;
  /// Returns the last row of the window; empty if it has none.
  std::string LastRow(Connection& connection) const;
  /// Adds a row, all of whose cells were listed, to listed_.
  void AddListed(std::string key, std::vector<ListedCell> cells, const PageQuery& query);

  const std::shared_ptr<Fleet> fleet_;
  const std::shared_ptr<const Dataset> dataset_;
  const RowRange range_;
  const std::string end_;      // no row after this one is in the range; one that is equal may be
  const ReadOptions options_;  // for each row
  std::optional<std::vector<std::string>> columns_;
  uint32_t shard_ = 0;
  uint32_t last_shard_ = 0;
  std::string passed_;  // the last row that was taken from a list; empty before the first
  std::string from_;    // where the next list of the shard begins
  std::string window_;  // the last row that the next list may have; empty: not known yet
  bool shard_done_ = false;
  std::deque<Listed> listed_;
  std::optional<ScanPosition> position_;
};

}  // namespace kvstore::mysql
