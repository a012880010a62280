#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/row_store.h"
#include "backends/mysql/driver/connection.h"
#include "backends/mysql/fleet/dataset.h"

namespace kvstore::mysql {

/// A cell as statements list it: without its value if that is larger than kInlineValueBytes; it is then
/// fetched by a statement of its own.
struct ListedCell {
  std::string column;
  uint64_t timestamp = 0;
  uint64_t bytes = 0;
  std::optional<std::string> value;
};

/// Reads the cell whose parts are the columns of a result from number `first` on.
ListedCell ReadCell(const Rows& rows, uint32_t first);

/// Reverses the cells of each column if the family's key has the newest one last.
void PutNewestFirst(std::vector<ListedCell>& cells, const TableFamily& family);

/// What to read of a row: the caller's options, with the dataset's settings as of one moment.
struct RowQuery {
  const std::optional<std::vector<std::string>>* columns = nullptr;  ///< Sorted, each once.
  uint32_t versions = 1;
  uint32_t limit = 0;
  size_t max_bytes = 0;
  TimeRange range;            ///< Begins no earlier than the lowest timestamp that has not expired.
  uint32_t max_versions = 0;  ///< The dataset's; 0: all versions are kept.
};

/// Builds a page from cells that come in order: columns ascending, in each the newest cell first.
class PageBuilder {
 public:
  PageBuilder(const RowQuery& query, const std::optional<RowPosition>& after)
      : query_(query), after_(after) {}

  /// Which cells the builder wants next.
  enum class Wants : uint8_t {
    kMore,        ///< The next cell.
    kNextColumn,  ///< The first cell of another column.
    kNothing,     ///< None: the page is full, and more remains.
  };
  struct Verdict {
    Wants wants = Wants::kMore;
    bool take = false;  ///< The cell is a part of the page, and so its value is needed.
  };
  /// Decides on the next cell. If the verdict says `take`, the caller must Add it.
  Verdict Inspect(std::string_view column, uint64_t timestamp, uint64_t value_bytes);
  void Add(std::string column, uint64_t timestamp, std::string value);

  bool empty() const { return items_.empty(); }

  /// Returns the page. Called once all cells were inspected, or the builder wants nothing more.
  RowPage Finish();

 private:
  void BeginColumn(std::string_view column);

  const RowQuery& query_;
  const std::optional<RowPosition>& after_;
  std::vector<Item> items_;
  std::string column_;
  bool begun_ = false;
  uint64_t seen_ = 0;   // live cells of the column so far
  uint64_t taken_ = 0;  // those of them that are on this page or on earlier ones
  size_t page_cells_ = 0;
  size_t bytes_ = 0;
  bool full_ = false;
};

/// Reads a page of one row on a connection. Throws sql::SQLException. Returns DEADLINE_EXCEEDED or CANCELLED
/// if this thread's call is over before. An empty page may have a next one: it was cut short after many
/// columns.
///
/// Most rows need one statement. A row with many cells that are not visible, or with a large value, is read
/// column by column, in a snapshot: without one, two statements might see the row before and after a write.
absl::StatusOr<RowPage> ReadPage(Connection& connection, const Table& table, std::string_view row,
                                 const RowQuery& query, const std::optional<RowPosition>& after);

/// Returns what to read under these options and the dataset's settings now.
///
/// lowest_live  Dataset::LowestLive of the connection that reads.
/// columns      receives the sorted columns; the query refers to it.
RowQuery MakeQuery(const Dataset& dataset, uint64_t lowest_live, const ReadOptions& options,
                   std::optional<std::vector<std::string>>& columns);

}  // namespace kvstore::mysql
