#pragma once

#include <rocksdb/iterator.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/family.h"
#include "kvstore_api/options.h"
#include "kvstore_api/row_store.h"

namespace kvstore::rocks {

/// A page of a row ends, even with nothing in it, after this many cells that were looked at: a row may have
/// any number of expired or deleted ones. Some 0.1 s.
inline constexpr uint64_t kMaxPageLooks = uint64_t{1} << 20;

/// The largest column name (or row key) below this one, which is not empty: what lies behind it, begins with
/// this one.
std::string NameBefore(std::string name);

/// What to read of a row, with the dataset's settings worked in.
struct RowQuery {
  /// Sorted, without repeats; null: all columns.
  const std::vector<std::string>* columns = nullptr;
  uint32_t versions = 1;           ///< Cells to return of a column.
  uint32_t max_versions = 0;       ///< Newest cells of a column that are visible; 0: all.
  uint64_t start = 0;              ///< Cells before are not returned: out of the time range, or expired.
  uint64_t end = 0;                ///< Cells from here on are not returned, though they count as versions.
  uint32_t limit = 0;              ///< Columns of a page.
  size_t max_bytes = 0;            ///< Bytes of names and values of a page.
  uint64_t looks = kMaxPageLooks;  ///< Cells to look at.
  /// A page that has something ends because of `looks` too; else only one that has nothing.
  bool ends_short = true;

  void Set(const TimeRange& range, const FamilySettings& settings);
};

/// Reads pages of rows through an iterator. It goes forward only, copies only what it returns, and passes
/// over unwanted cells by stepping or, when there are many, by seeking to the next column. Externally
/// synchronised.
class RowReader {
 public:
  /// The iterator must outlive this. Its bounds must lie around the rows that are read.
  explicit RowReader(rocksdb::Iterator& iterator) : it_(iterator) {}

  /// Reads one page of one row, reusing the memory of `items`.
  ///
  /// row         enc(row).
  /// after       where to go on; null to start.
  /// positioned  the iterator stands at the first key of the row already.
  ///
  /// Returns where the next page begins; none at the end of the row. The iterator is left in or behind the
  /// row if there is a next page or a column list, else behind the row; there it may have stopped among
  /// deleted cells (deleted.h). DEADLINE_EXCEEDED or CANCELLED if the call of this thread is over before.
  absl::StatusOr<std::optional<RowPosition>> Read(std::string_view row, const RowQuery& query,
                                                  const RowPosition* after, bool positioned,
                                                  std::vector<Item>& items);

 private:
  absl::Status ReadColumns(const RowPosition* after, bool positioned);
  absl::Status ReadNamedColumns(const RowPosition* after);
  absl::Status ReadColumn(const RowPosition* resume);
  absl::Status EnterColumn();
  void SetColumn(std::string_view column);
  void LeaveColumn();
  void Seek(const std::string& key);
  void Next();
  void Look();
  bool PassDeleted();
  bool EndBefore(std::string_view key);
  bool CheckLooks();
  bool MayEnd() const { return looked_ >= query_->looks && (columns_ == 0 || query_->ends_short); }
  // False if the page is full, or the column's name malformed.
  bool Emit(uint64_t timestamp, uint32_t already);
  bool OpenItem(size_t value_bytes);

  /// Cells of a column to step over before a seek is tried, which costs as much as about so many steps; fewer
  /// where the column before was long.
  static constexpr int kStepsBeforeSeek = 16;
  static constexpr int kFewSteps = 2;
  /// The caller's limits are looked at after so many moves of the iterator.
  static constexpr uint32_t kMovesBetweenChecks = 1024;

  rocksdb::Iterator& it_;
  int steps_before_seek_ = kStepsBeforeSeek;
  // Where the iterator stands since it last moved; asking it, and comparing keys, costs some nanoseconds each
  // time.
  bool valid_ = false;
  bool in_row_ = false;
  bool in_column_ = false;
  std::string_view key_;    // while valid_
  std::string column_key_;  // enc(row) enc(column) of the current column
  size_t row_bytes_ = 0;    // of enc(row)
  uint32_t moves_left_ = kMovesBetweenChecks;
  bool stopped_ =
      false;  // not valid, and there may be more in the row: in a later column than the current one
  const RowQuery* query_ = nullptr;
  const RowPosition* after_ = nullptr;

  // The page.
  std::vector<Item>* items_ = nullptr;
  size_t columns_ = 0;     // items in use
  size_t cells_ = 0;       // cells in use of the last item
  size_t page_cells_ = 0;  // cells of all items
  size_t bytes_ = 0;
  bool open_ = false;  // the last item is the current column
  bool malformed_ = false;
  uint64_t looked_ = 0;
  absl::Status failed_;
  std::optional<RowPosition> next_;
};

}  // namespace kvstore::rocks
