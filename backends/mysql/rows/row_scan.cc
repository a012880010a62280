#include "backends/mysql/rows/row_scan.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "backend_api/scan_budget.h"
#include "kvstore_api/limits.h"
#include "shardmap/mod_shard.h"

namespace kvstore::mysql {
namespace {

/// How many cells a statement lists.
constexpr uint64_t kCells = 1024;
/// How many cells a statement reads at most if it wants only some of them.
constexpr uint64_t kWindowCells = 16'384;
/// If more columns than this are named, statements list keys of rows, which are then read one by one.
constexpr size_t kMaxColumns = 64;

}  // namespace

MySqlRowScan::MySqlRowScan(std::shared_ptr<Fleet> fleet, std::shared_ptr<const Dataset> dataset,
                           RowRange range, const ScanOptions& options)
    : fleet_(std::move(fleet)),
      dataset_(std::move(dataset)),
      range_(std::move(range)),
      end_(range_.end.empty() ? std::string(kMaxRowKeyBytes, '\xff') : range_.end),
      options_(EachRow(options)),
      last_shard_(fleet_->mod_shards() - 1),
      from_(range_.start) {}

absl::StatusOr<std::unique_ptr<RowScan>> MySqlRowScan::Open(std::shared_ptr<Fleet> fleet,
                                                            std::shared_ptr<const Dataset> dataset,
                                                            const RowRange& range, const ScanOptions& options,
                                                            const std::optional<ScanPosition>& after) {
  std::unique_ptr<MySqlRowScan> scan(new MySqlRowScan(std::move(fleet), std::move(dataset), range, options));
  if (!range.shard.empty()) {
    uint32_t shard = 0;
    while (shard <= scan->last_shard_ && DatabaseName(ShardSpace::kMod, shard) != range.shard) ++shard;
    if (shard > scan->last_shard_) {
      return absl::InvalidArgumentError(fmt::format("partition: there is none named '{}', only {} to {}",
                                                    range.shard, DatabaseName(ShardSpace::kMod, 0),
                                                    DatabaseName(ShardSpace::kMod, scan->last_shard_)));
    }
    scan->shard_ = scan->last_shard_ = shard;
  }
  if (after) {
    const uint32_t shard = ModShard(after->row, scan->fleet_->mod_shards());
    if (shard < scan->shard_ || shard > scan->last_shard_) {
      return absl::InvalidArgumentError("marker: it is of another partition than the one that is scanned");
    }
    scan->shard_ = shard;
    scan->from_ = Behind(after->row);
    scan->position_ = after;
    if (after->inside) {
      scan->listed_.push_back({.key = after->row, .read_alone = true, .after = after->inside});
    }
  }
  return scan;
}

PageQuery MySqlRowScan::Query(uint64_t lowest_live) {
  return MakeQuery(*dataset_, lowest_live, options_, columns_);
}

void MySqlRowScan::AddListed(std::string key, std::vector<ListedCell> cells, const PageQuery& query) {
  const std::optional<RowPosition> from_the_start;
  PageBuilder builder(query, from_the_start);
  PutNewestFirst(cells, dataset_->family);
  bool whole = true;
  for (ListedCell& cell : cells) {
    const auto verdict = builder.Inspect(cell.column, cell.timestamp, cell.bytes);
    whole = verdict.wants != PageBuilder::Wants::kNothing && (!verdict.take || cell.value.has_value());
    if (!whole) break;
    if (verdict.take) builder.Add(std::move(cell.column), cell.timestamp, *std::move(cell.value));
  }
  if (!whole) {
    listed_.push_back({.key = std::move(key), .read_alone = true});
    return;
  }
  RowPage page = builder.Finish();
  if (!page.items.empty()) listed_.push_back({.key = std::move(key), .items = std::move(page.items)});
}

std::string MySqlRowScan::WindowEnd(Connection& connection) const {
  Rows rows = connection.Prepare(Sql::kScanWindow, dataset_->TableOn(shard_))
                  .Bind(from_)
                  .Bind(end_)
                  .Bind(kWindowCells - 1)
                  .Query();
  return rows.Next() ? rows.Bytes(1) : end_;
}

std::string MySqlRowScan::LastRow(Connection& connection) const {
  Rows rows = connection.Prepare(Sql::kScanLast, dataset_->TableOn(shard_)).Bind(from_).Bind(window_).Query();
  return rows.Next() && !rows.IsNull(1) ? rows.Bytes(1) : "";
}

absl::Status MySqlRowScan::Fetch() {
  PageQuery query = Query(0);
  std::vector<std::pair<std::string, std::vector<ListedCell>>> rows;
  const size_t columns = columns_ && columns_->size() <= kMaxColumns ? columns_->size() : 0;
  const bool keys_only = columns_ && columns == 0;
  uint64_t examined = kCells;
  size_t listed = 0;
  std::string last;
  absl::Status status =
      fleet_->Run(ShardSpace::kMod, shard_, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
        rows.clear();
        last.clear();
        listed = 0;
        query = Query(dataset_->LowestLive(connection));
        const bool is_filtered = columns > 0 || query.range.start > 0;
        if (window_.empty()) {
          if (is_filtered) examined = kWindowCells;
          window_ = is_filtered ? WindowEnd(connection) : end_;
        }
        Call call = connection.Prepare(Sql::kScanCells, dataset_->TableOn(shard_), columns)
                        .Bind(from_)
                        .Bind(window_)
                        .Bind(query.range.start);
        for (size_t i = 0; i < columns; ++i) call.Bind((*columns_)[i]);
        for (Rows cells = call.Bind(kCells).Query(); cells.Next(); ++listed) {
          std::string key = cells.Bytes(1);
          if (rows.empty() || rows.back().first != key)
            rows.emplace_back(std::move(key), std::vector<ListedCell>());
          rows.back().second.push_back(ReadCell(cells, 2));
        }
        // A scan that pauses needs a row to go on after.
        if (listed == 0 && is_filtered) last = LastRow(connection);
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  SpendScanBudget(examined);
  const bool whole = listed < kCells;  // the list has all that the window has
  const std::string window = window_;
  if (whole) window_.clear();
  shard_done_ = whole && window == end_;
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& [key, cells] = rows[i];
    if (!range_.end.empty() && key >= range_.end) {
      shard_done_ = true;
      return absl::OkStatus();
    }
    // The last row may have more cells. It comes with the next list; or, if it is alone in this one, it is
    // read on its own.
    if (!whole && i + 1 == rows.size() && i > 0) return absl::OkStatus();
    from_ = Behind(key);
    passed_ = key;
    if (keys_only || (!whole && i + 1 == rows.size())) {
      listed_.push_back({.key = std::move(key), .read_alone = true});
    } else {
      AddListed(std::move(key), std::move(cells), query);
    }
    if (!whole && i + 2 == rows.size()) from_ = rows.back().first;
  }
  if (whole && !shard_done_) {
    from_ = Behind(window);
    passed_ = window;
  } else if (!last.empty() && last != range_.end) {
    passed_ = last;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> MySqlRowScan::Next(ScannedRow& row) {
  for (;;) {
    if (listed_.empty()) {
      if (shard_done_) {
        if (shard_ == last_shard_) return false;
        ++shard_;
        from_ = range_.start;
        window_.clear();
        shard_done_ = false;
      }
      if (auto status = Fetch(); !status.ok()) return status;
      if (!listed_.empty() || !IsScanBudgetSpent()) continue;
      // Nothing that was listed so far is returned: the scan pauses after it, so that others get the thread.
      // After empty shards alone it would go on where it was before, and its caller take it for stuck.
      if (passed_.empty() || (position_ && !position_->inside && position_->row == passed_)) continue;
      position_ = ScanPosition{.row = passed_};
      return PausedError();
    }
    Listed& next = listed_.front();
    std::optional<RowPosition> inside;
    if (next.read_alone) {
      auto page = fleet_->Run(
          ShardSpace::kMod, shard_, Repeat::kAlways, [&](Connection& connection) -> absl::StatusOr<RowPage> {
            const PageQuery query = Query(dataset_->LowestLive(connection));
            return ReadPage(connection, dataset_->TableOn(shard_), next.key, query, next.after);
          });
      if (!page.ok()) return page.status();
      if (page->items.empty()) {
        SpendScanBudget(kCells);
        position_ = ScanPosition{next.key, page->next};
        if (page->next) {
          next.after = std::move(page->next);
        } else {
          listed_.pop_front();
        }
        if (IsScanBudgetSpent()) return PausedError();
        continue;
      }
      next.items = std::move(page->items);
      inside = page->next;
    }
    row.key = next.key;
    row.items = std::move(next.items);
    row.continues = inside.has_value();
    position_ = ScanPosition{row.key, inside};
    if (inside) {
      next.after = std::move(inside);
    } else {
      listed_.pop_front();
    }
    return true;
  }
}

}  // namespace kvstore::mysql
