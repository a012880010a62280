#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/page_builder.h"
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

/// Reads a page of one row on a connection. Throws sql::SQLException. Returns DEADLINE_EXCEEDED or CANCELLED
/// if this thread's call is over before. An empty page may have a next one: it was cut short after many
/// columns.
///
/// Most rows need one statement. A row with many cells that are not visible, or with a large value, is read
/// column by column, in a snapshot: without one, two statements might see the row before and after a write.
absl::StatusOr<RowPage> ReadPage(Connection& connection, const Table& table, std::string_view row,
                                 const PageQuery& query, const std::optional<RowPosition>& after);

/// Returns what to read under these options and the dataset's settings now.
///
/// lowest_live  Dataset::LowestLive of the connection that reads.
/// columns      receives the sorted columns; the query refers to it.
PageQuery MakeQuery(const Dataset& dataset, uint64_t lowest_live, const ReadOptions& options,
                    std::optional<std::vector<std::string>>& columns);

}  // namespace kvstore::mysql
