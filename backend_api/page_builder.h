#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend_api/row_store.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// The part of a row to read: the caller's options, with the dataset's settings as of one moment.
struct PageQuery {
  const std::optional<std::vector<std::string>>* columns = nullptr;  ///< Sorted, each once.
  uint32_t versions = 1;
  uint32_t limit = 0;
  size_t max_bytes = 0;
  TimeRange range;            ///< Begins no earlier than the lowest timestamp that has not expired.
  uint32_t max_versions = 0;  ///< The dataset's; 0: all versions are kept.

  PageQuery() = default;
  /// oldest  The lowest timestamp that has not expired.
  PageQuery(const ReadOptions& options, uint64_t oldest, uint32_t dataset_max_versions);
};

/// Returns the options by which a scan reads each of its rows.
ReadOptions EachRow(const ScanOptions& options);

/// Builds a page from cells that come in order: columns ascending, in each the newest cell first. Knows which
/// of them are visible and asked for, and where a page ends. Externally synchronised.
class PageBuilder {
 public:
  PageBuilder(const PageQuery& query, const std::optional<RowPosition>& after)
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

  const PageQuery& query_;
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

}  // namespace kvstore
