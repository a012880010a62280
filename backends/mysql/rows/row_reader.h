#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/connection.h"
#include "backends/mysql/dataset.h"
#include "kvstore_api/row_store.h"

namespace kvstore::mysql {

/// A cell as statements list them. Without a value, if it is large: that is fetched on its own.
struct ListedCell {
  std::string column;
  uint64_t timestamp = 0;
  uint64_t bytes = 0;
  std::optional<std::string> value;
};

/// The cell in the columns of a result from `first` on.
ListedCell ReadCell(const Rows& rows, uint32_t first);

/// Turns the timestamps of each column newest first, if the key has them the other way round.
void PutNewestFirst(std::vector<ListedCell>& cells, const TableFamily& family);

/// What to read of a row: the caller's options and the dataset's settings, at one time.
struct RowQuery {
  const std::optional<std::vector<std::string>>* columns = nullptr;  ///< Sorted, each once.
  uint32_t versions = 1;
  uint32_t limit = 0;
  size_t max_bytes = 0;
  TimeRange range;            ///< Expired time is cut off.
  uint32_t max_versions = 0;  ///< Of the dataset; 0: all.
};

/// Puts a page together from cells that come in order: columns ascending, newest first.
class PageBuilder {
 public:
  PageBuilder(const RowQuery& query, const std::optional<RowPosition>& after)
      : query_(query), after_(after) {}

  /// What the builder wants next.
  enum class Wants : uint8_t {
    kMore,        ///< The next cell.
    kNextColumn,  ///< No more of this column.
    kNothing,     ///< The page is full, and more remains.
  };
  /// Whether the cell would be returned, and so its value is needed.
  struct Verdict {
    Wants wants = Wants::kMore;
    bool take = false;
  };
  /// Looks at the next cell; if it says so, Take must follow.
  Verdict Look(std::string_view column, uint64_t timestamp, uint64_t value_bytes);
  void Take(std::string column, uint64_t timestamp, std::string value);

  bool empty() const { return items_.empty(); }

  /// The page, when all cells were seen (`end`) or the builder wants nothing.
  RowPage Finish();

 private:
  void BeginColumn(std::string_view column);

  const RowQuery& query_;
  const std::optional<RowPosition>& after_;
  std::vector<Item> items_;
  std::string column_;
  bool begun_ = false;
  uint64_t seen_ = 0;   // live cells of the column, newest first
  uint64_t taken_ = 0;  // of them returned, on this page and on the one before
  size_t page_cells_ = 0;
  size_t bytes_ = 0;
  bool full_ = false;
};

/// Reads a page of one row on a connection. Throws sql::SQLException. DEADLINE_EXCEEDED or CANCELLED if the
/// call of this thread is over before. A page without anything may have a next one: it was cut short after
/// many columns.
///
/// Most rows need one statement. A row that has much that is not visible, or a large value, is read column
/// by column, in a snapshot: two statements alone might see a row before and after a write.
absl::StatusOr<RowPage> ReadPage(Connection& connection, const Table& table, std::string_view row,
                                 const RowQuery& query, const std::optional<RowPosition>& after);

}  // namespace kvstore::mysql
