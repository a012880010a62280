#include "backends/mysql/rows/row_reader.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "backend_api/row_rules.h"
#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"

namespace kvstore::mysql {
namespace {

/// How many cells the optimistic statement for a whole page asks for at most.
constexpr uint64_t kOptimisticCells = 256;
/// How many cells of a column one statement asks for at most.
constexpr uint64_t kChunkCells = 1024;
/// How many named columns one statement asks for.
constexpr size_t kTogether = 16;
/// How many cells one statement passes at most that are not in the range, expired ones for example. A page
/// ends, even if it is empty, after so many such stretches.
constexpr uint64_t kPassedCells = 16'384;
constexpr int kMaxEmptyStretches = 64;

/// Reads one page.
class PageRead {
 public:
  /// snapshot  whether the connection is in a snapshot. Without one, the attempt ends where it would need a
  ///           second statement.
  PageRead(Connection& connection, const Table& table, std::string_view row, const PageQuery& query,
           const std::optional<RowPosition>& after, bool snapshot)
      : connection_(connection),
        table_(table),
        row_(row),
        query_(query),
        after_(after),
        snapshot_(snapshot),
        builder_(query, after) {}

  /// Returns the page; nullopt if it needs a snapshot, or the call is over.
  std::optional<RowPage> Read() {
    const bool done = query_.columns->has_value() ? ReadNamedColumns() : ReadAllColumns();
    if (!done) return std::nullopt;
    RowPage page = builder_.Finish();
    if (next_) page.next = std::move(next_);
    return page;
  }

  /// After Read has returned nullopt: why the call is over; OK if a snapshot is needed.
  const absl::Status& over() const { return over_; }

 private:
  using Wants = PageBuilder::Wants;

  /// Whether the page before ended inside of this column.
  bool InsideColumn(std::string_view column) const {
    return after_ && after_->cells > 0 && after_->column == column;
  }

  /// Returns how many cells of a column may be needed, counted from the newest one that is listed (see End).
  uint64_t Needed(std::string_view column) const {
    const bool inside = InsideColumn(column);
    const uint64_t rest = query_.versions - (inside ? std::min(after_->cells, query_.versions) : 0);
    if (query_.max_versions == 0) return rest;
    if (inside || query_.range.end <= kMaxTimestamp) return query_.max_versions;
    return std::min<uint64_t>(rest, query_.max_versions);
  }

  /// Returns the timestamp from which on cells of the column need not be listed. Where the dataset limits
  /// versions, newer cells count too, so all are listed.
  uint64_t End(std::string_view column) const {
    if (query_.max_versions != 0) return kMaxTimestamp + 1;
    return InsideColumn(column) ? std::min(query_.range.end, after_->timestamp) : query_.range.end;
  }

  /// Whether another statement may be run: the call is not over, and there is a snapshot or this is the first
  /// statement.
  bool MayRun() {
    over_ = CheckCall();
    const bool may = snapshot_ || statements_ == 0;
    ++statements_;
    return may && over_.ok();
  }

  // The functions below return false if the attempt ends without a page: MayRun has refused a statement.

  /// Offers cells to the builder, and sets `wants` to what it wants after them.
  bool Offer(std::span<ListedCell> cells, Wants& wants) {
    for (size_t i = 0; i < cells.size(); ++i) {
      ListedCell& cell = cells[i];
      const auto verdict = builder_.Inspect(cell.column, cell.timestamp, cell.bytes);
      wants = verdict.wants;
      if (verdict.take) {
        if (!cell.value && !FetchValue(cell)) return false;
        builder_.Add(cell.column, cell.timestamp, *std::move(cell.value));
      }
      if (wants == Wants::kNothing) return true;
      if (wants == Wants::kNextColumn) {
        while (i + 1 < cells.size() && cells[i + 1].column == cell.column) ++i;
      }
    }
    return true;
  }

  bool FetchValue(ListedCell& cell) {
    if (!MayRun()) return false;
    Rows rows = connection_.Prepare(Sql::kCellValue, table_)
                    .Bind(row_)
                    .Bind(cell.column)
                    .Bind(cell.timestamp)
                    .Query();
    rows.Next();
    cell.value = rows.Bytes(1);
    return true;
  }

  static std::vector<ListedCell> Collect(Rows rows) {
    std::vector<ListedCell> cells;
    while (rows.Next()) cells.push_back(ReadCell(rows, 1));
    return cells;
  }

  /// Lists the `asked` newest cells of a column that are older than `end`.
  std::vector<ListedCell> ListColumn(const std::string& column, uint64_t end, uint64_t asked) {
    return Collect(connection_.Prepare(Sql::kColumnCells, table_)
                       .Bind(row_)
                       .Bind(column)
                       .Bind(query_.range.start)
                       .Bind(end)
                       .Bind(asked)
                       .Query());
  }

  /// Offers a column to the builder: `cells`, for which a statement with the limit `asked` was run, and as
  /// many more as are needed.
  bool OfferColumn(const std::string& column, std::vector<ListedCell> cells, uint64_t asked, Wants& wants) {
    uint64_t needed = Needed(column);
    for (;;) {
      wants = Wants::kMore;
      if (!Offer(cells, wants)) return false;
      needed -= std::min<uint64_t>(needed, cells.size());
      if (wants != Wants::kMore || cells.size() < asked || needed == 0) return true;
      if (!MayRun()) return false;
      asked = std::min(needed, kChunkCells);
      cells = ListColumn(column, cells.back().timestamp, asked);
    }
  }

  bool ReadNamedColumns() {
    std::span<const std::string> columns(**query_.columns);
    if (after_) {
      const auto behind = std::lower_bound(columns.begin(), columns.end(), after_->column);
      columns = columns.subspan(static_cast<size_t>(behind - columns.begin()));
      if (after_->cells == 0 && !columns.empty() && columns[0] == after_->column)
        columns = columns.subspan(1);
    }
    while (!columns.empty()) {
      // Several columns are read by one statement if few cells of each are needed.
      const uint64_t needed = std::max(Needed(columns.front()), Needed(columns.back()));
      const size_t together = needed <= kChunkCells / kTogether ? std::min(columns.size(), kTogether) : 1;
      if (!MayRun()) return false;
      const uint64_t asked = std::min(needed, kChunkCells);
      Call call = connection_.Prepare(Sql::kColumnCells, table_, together);
      for (const std::string& column : columns.first(together)) {
        call.Bind(row_).Bind(column).Bind(query_.range.start).Bind(End(column)).Bind(asked);
      }
      std::vector<ListedCell> cells = Collect(call.Query());
      // Servers return the parts of a union in their order, but do not promise to.
      std::stable_sort(cells.begin(), cells.end(),
                       [](const ListedCell& a, const ListedCell& b) { return a.column < b.column; });
      auto at = cells.begin();
      for (const std::string& column : columns.first(together)) {
        const auto end =
            std::find_if(at, cells.end(), [&](const ListedCell& cell) { return cell.column != column; });
        Wants wants = Wants::kMore;
        std::vector<ListedCell> mine(std::make_move_iterator(at), std::make_move_iterator(end));
        if (!OfferColumn(column, std::move(mine), asked, wants)) return false;
        if (wants == Wants::kNothing) return true;
        at = end;
      }
      columns = columns.subspan(together);
    }
    return true;
  }

  bool ReadAllColumns() {
    std::string from;
    if (after_) from = after_->cells > 0 ? after_->column : Behind(after_->column);
    const bool optimistic = !snapshot_ && !InsideColumn(from) && query_.range.end > kMaxTimestamp;
    return optimistic ? ReadOptimistically(from) : ReadColumnByColumn(std::move(from));
  }

  /// Reads the whole page by one statement. Returns false if that was not enough.
  bool ReadOptimistically(const std::string& from) {
    // Cells below the range, such as expired ones, are listed too, so that the limit bounds what the server
    // reads.
    const uint64_t limit = query_.range.start > 0
                               ? kOptimisticCells
                               : std::min(uint64_t{query_.limit} * Needed(from) + 1, kOptimisticCells);
    ++statements_;
    std::vector<ListedCell> cells =
        Collect(connection_.Prepare(Sql::kRowCells, table_).Bind(row_).Bind(from).Bind(limit).Query());
    const bool all = cells.size() < limit;
    if (!all) {
      // The last column may have more cells than the limit let through.
      const std::string last = cells.back().column;
      while (!cells.empty() && cells.back().column == last) cells.pop_back();
    }
    PutNewestFirst(cells, *table_.family);
    Wants wants = Wants::kMore;
    if (!Offer(cells, wants)) return false;
    return all || wants == Wants::kNothing;
  }

  bool ReadColumnByColumn(std::string from) {
    if (!snapshot_) return false;
    if (InsideColumn(from)) {
      const uint64_t asked = std::min(Needed(from), kChunkCells);
      Wants wants = Wants::kMore;
      if (!OfferColumn(from, ListColumn(from, End(from), asked), asked, wants)) return false;
      if (wants == Wants::kNothing) return true;
      from = Behind(std::move(from));
    }
    // The last column that was passed, once one was.
    std::string passed;
    for (int empty = 0;;) {
      if (!MayRun()) return false;
      const uint64_t asked = std::min(Needed(from), kChunkCells);
      std::vector<ListedCell> cells = Collect(connection_.Prepare(Sql::kNextColumnCells, table_)
                                                  .Bind(row_)
                                                  .Bind(row_)
                                                  .Bind(from)
                                                  .Bind(query_.range.start)
                                                  .Bind(End(from))
                                                  .Bind(asked)
                                                  .Query());
      if (cells.empty()) {
        // Either the next column has no cells in the range, or there is no next column. If the stretch before
        // ended inside of a column, that is the next one, and is passed now. Only an empty page may end here:
        // the marker of another one promises that more cells follow.
        if (empty >= kMaxEmptyStretches && builder_.empty()) {
          next_ = RowPosition{.column = std::move(passed)};
          return true;
        }
        ++empty;
        if (!PassEmptyColumns(from, passed)) return true;
        Reached("row.passed");
        continue;
      }
      passed = cells.front().column;
      Wants wants = Wants::kMore;
      if (!OfferColumn(passed, std::move(cells), asked, wants)) return false;
      if (wants == Wants::kNothing) return true;
      from = Behind(passed);
    }
  }

  /// Passes a stretch of columns without cells in the range, from `from` on, of which the first one is known
  /// to have none. Sets `from` to where to go on, and `passed` to the last column that is passed if the one
  /// at `from` has no cells in the range either. Returns false if the row ends.
  bool PassEmptyColumns(std::string& from, std::string& passed) {
    Rows rows = connection_.Prepare(Sql::kNextColumn, table_)
                    .Bind(query_.range.start)
                    .Bind(End(from))
                    .Bind(row_)
                    .Bind(from)
                    .Bind(kPassedCells)
                    .Query();
    rows.Next();
    if (!rows.IsNull(1)) {
      passed = from = rows.Bytes(1);
      return true;
    }
    if (rows.Uint(4) < kPassedCells) return false;
    passed = rows.Bytes(3);
    // The last column may have more cells than were looked at, unless it is the one that has none.
    from = rows.Bytes(2) == passed ? Behind(passed) : passed;
    return true;
  }

  Connection& connection_;
  const Table& table_;
  const std::string_view row_;
  const PageQuery& query_;
  const std::optional<RowPosition>& after_;
  const bool snapshot_;
  PageBuilder builder_;
  int statements_ = 0;
  absl::Status over_;
  std::optional<RowPosition> next_;
};

}  // namespace

ListedCell ReadCell(const Rows& rows, uint32_t first) {
  ListedCell cell{rows.Bytes(first), rows.Uint(first + 1), 0, std::nullopt};
  if (rows.IsNull(first + 3)) {
    cell.bytes = rows.Uint(first + 2);
  } else {
    cell.value = rows.Bytes(first + 3);
    cell.bytes = cell.value->size();
  }
  return cell;
}

void PutNewestFirst(std::vector<ListedCell>& cells, const TableFamily& family) {
  if (!family.newest_last) return;
  for (auto begin = cells.begin(); begin != cells.end();) {
    const auto end = std::find_if(begin, cells.end(),
                                  [&](const ListedCell& cell) { return cell.column != begin->column; });
    std::reverse(begin, end);
    begin = end;
  }
}

absl::StatusOr<RowPage> ReadPage(Connection& connection, const Table& table, std::string_view row,
                                 const PageQuery& query, const std::optional<RowPosition>& after) {
  PageRead optimistic(connection, table, row, query, after, /*snapshot=*/false);
  if (auto page = optimistic.Read()) return *std::move(page);
  if (!optimistic.over().ok()) return optimistic.over();
  Transaction transaction(connection, Transaction::Kind::kSnapshot);
  PageRead read(connection, table, row, query, after, /*snapshot=*/true);
  auto page = read.Read();
  transaction.Commit();
  if (!page) return read.over();
  return *std::move(page);
}

PageQuery MakeQuery(const Dataset& dataset, uint64_t lowest_live, const ReadOptions& options,
                    std::optional<std::vector<std::string>>& columns) {
  if (options.columns) columns = SortedColumns(*options.columns);
  PageQuery query(options, lowest_live, dataset.max_versions);
  query.columns = &columns;
  return query;
}

}  // namespace kvstore::mysql
