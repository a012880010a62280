#pragma once

#include <rocksdb/iterator.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/row_store.h"
#include "backends/rocksdb/engine/family.h"
#include "kvstore_api/options.h"

namespace kvstore::rocks {

/// A page of a row ends, even with nothing in it, once this many cells were examined: a row may have any
/// number of expired or deleted cells. About 0.1 s.
inline constexpr uint64_t kMaxPageExamined = uint64_t{1} << 20;

/// Returns the largest column name (or row key) that sorts before `name`, which must not be empty. A read
/// that goes on after the result begins with `name`.
std::string NameBefore(std::string name);

/// A query of one row, with the dataset's settings applied.
struct RowQuery {
  /// Sorted, without repeats; null: all columns.
  const std::vector<std::string>* columns = nullptr;
  uint32_t versions = 1;      ///< Cells to return of each column.
  uint32_t max_versions = 0;  ///< Newest cells of a column that are visible; 0: all.
  uint64_t start = 0;         ///< Cells with lower timestamps are not returned: expired, or before the range.
  uint64_t end = 0;           ///< Cells from this timestamp on are not returned, but count as versions.
  uint32_t limit = 0;         ///< Columns that a page may have.
  size_t max_bytes = 0;       ///< Bytes of names and values that a page may have.
  uint64_t max_examined = kMaxPageExamined;  ///< Cells to examine before a page ends.
  /// Whether a page that has columns ends because of max_examined, too; if not, only an empty page does.
  bool ends_short = true;

  /// Sets max_versions, start and end.
  void SetVisibility(const TimeRange& range, const FamilySettings& settings);
};

/// Reads pages of rows through an iterator. It only moves forward, copies only what it returns, and passes
/// unwanted cells by stepping or, when there are many, by seeking to the next column. Externally
/// synchronised.
class RowReader {
 public:
  /// The iterator must outlive the reader, and its bounds must contain the rows that are read.
  explicit RowReader(rocksdb::Iterator& iterator) : it_(iterator) {}

  /// Reads one page of one row into `items`, whose memory is reused.
  ///
  /// row         enc(row).
  /// after       the position at which the page begins; null for the first page.
  /// positioned  whether the iterator already stands at the first key of the row.
  ///
  /// Returns where the next page begins; nullopt at the end of the row. If there is a next page or a column
  /// list, the iterator is left in or after the row; else after the row, where it may have stopped among
  /// deleted cells (deleted.h). DEADLINE_EXCEEDED or CANCELLED if the thread's call ends first.
  absl::StatusOr<std::optional<RowPosition>> Read(std::string_view row, const RowQuery& query,
                                                  const RowPosition* after, bool positioned,
                                                  std::vector<Item>& items);

 private:
  absl::Status ReadColumns(const RowPosition* after, bool positioned);
  absl::Status ReadNamedColumns(const RowPosition* after);
  absl::Status ReadColumn(const RowPosition* resume);
  absl::Status AdoptColumn();
  void SetColumn(std::string_view column);
  void LeaveColumn();
  void Seek(const std::string& key);
  void Next();
  void UpdatePosition();
  // These are not on the path of each cell.
  [[gnu::noinline, gnu::cold]] bool PassDeleted();
  [[gnu::noinline, gnu::cold]] bool EndBefore(std::string_view key);
  [[gnu::noinline, gnu::cold]] bool CheckLimits();
  bool MayEnd() const { return examined_ >= query_->max_examined && (columns_ == 0 || query_->ends_short); }
  // Returns false if the page is full, or the column's name is malformed.
  bool Emit(uint64_t timestamp, uint32_t already);
  bool OpenItem(size_t value_bytes);

  /// A seek costs about as much as 16 steps, so the reader steps over so many cells of a column before it
  /// seeks; over fewer where the column before was long.
  static constexpr int kStepsBeforeSeek = 16;
  static constexpr int kFewSteps = 2;
  /// The call's deadline is checked after so many moves of the iterator.
  static constexpr uint32_t kMovesBetweenChecks = 1024;

  rocksdb::Iterator& it_;
  int steps_before_seek_ = kStepsBeforeSeek;
  // The state of the iterator after its last move. Asking the iterator, and comparing keys, would cost some
  // nanoseconds each time.
  bool valid_ = false;
  bool in_row_ = false;
  bool in_column_ = false;
  std::string_view key_;    // while valid_
  std::string column_key_;  // enc(row) enc(column) of the current column
  size_t row_bytes_ = 0;    // size of enc(row)
  uint32_t moves_left_ = kMovesBetweenChecks;
  /// Not valid, but later columns of the row may have more.
  bool stopped_ = false;
  bool leaving_ = false;      // what is left of the current column is not wanted
  bool met_deleted_ = false;  // a column of this row had many deleted versions
  const RowQuery* query_ = nullptr;
  const RowPosition* after_ = nullptr;

  // The page that is read.
  std::vector<Item>* items_ = nullptr;
  size_t columns_ = 0;     // items in use
  size_t cells_ = 0;       // cells in use of the last item
  size_t page_cells_ = 0;  // cells of all items
  size_t bytes_ = 0;
  bool open_ = false;  // the last item is the current column
  bool malformed_ = false;
  uint64_t examined_ = 0;
  absl::Status failed_;
  std::optional<RowPosition> next_;
};

}  // namespace kvstore::rocks
