#include "backends/mysql/rows/purge.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "backends/mysql/driver/schema.h"
#include "base/mutex.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {
namespace {

/// How many keys of cells one statement lists, and how many cells one deletes.
constexpr uint64_t kListedCells = 1000;
constexpr uint64_t kDeletedCells = 500;
/// How soon a purge that waits for its rate notices that it must end.
constexpr std::chrono::milliseconds kMaxSleep{100};

/// The counts and the progress of all hosts' purges together. Thread-safe.
class Counts {
 public:
  Counts(const Progress& progress, uint64_t total) : progress_(progress), total_(total) {}

  /// Reports that so many more bytes were looked through. Returns whether the purge is to go on.
  bool Report(uint64_t bytes) {
    const MutexLock lock(mutex_);
    done_ = std::min(done_ + bytes, total_);
    if (progress_ && !stopped_ && !progress_(done_, total_)) stopped_ = true;
    return !stopped_;
  }

  std::atomic<uint64_t> expired{0};
  std::atomic<uint64_t> surplus{0};

 private:
  const Progress& progress_;
  const uint64_t total_;
  Mutex mutex_;
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

/// Limits the rate of a host's purge. Externally synchronised: a host is purged by one thread.
class Throttle {
 public:
  using Clock = std::chrono::steady_clock;
  /// per_second  cells; 0: no limit.
  explicit Throttle(uint64_t per_second) : per_second_(per_second) {}
  /// Returns until when the purge is ahead of its rate, with so many more cells done.
  Clock::time_point Spend(uint64_t cells) {
    if (per_second_ == 0) return begin_;
    passed_ += cells;
    return begin_ + std::chrono::microseconds(passed_ * 1'000'000 / per_second_);
  }

 private:
  const uint64_t per_second_;
  const Clock::time_point begin_ = Clock::now();
  uint64_t passed_ = 0;
};

/// The purge of one shard.
class ShardPurge {
 public:
  ShardPurge(Fleet& fleet, const Dataset& dataset, const DatasetSpec& spec, uint32_t shard,
             Throttle& throttle, Counts& counts)
      : fleet_(fleet),
        dataset_(dataset),
        spec_(spec),
        table_(dataset.TableOn(shard)),
        throttle_(throttle),
        counts_(counts) {}

  absl::Status Run(uint64_t bytes_per_cell) {
    const auto has_table = HasTable();
    if (!has_table.ok()) return has_table.status();
    if (!*has_table) return absl::OkStatus();
    for (;;) {
      const auto listed = List();
      if (!listed.ok()) return listed.status();
      for (const Column& column : columns_) {
        if (auto status = Trim(column); !status.ok()) return status;
      }
      if (auto status = WaitForRate(*listed); !status.ok()) return status;
      if (!counts_.Report(*listed * bytes_per_cell)) return Stopped();
      if (*listed < kListedCells && !inside_) return absl::OkStatus();
      Advance(*listed);
    }
  }

 private:
  struct Column {
    std::string row;
    std::string name;
    uint64_t cells = 0;
    uint64_t oldest = ~uint64_t{0};
    bool cut = false;  // the list ended in it: it may have more cells
  };

  static absl::Status Stopped() { return absl::CancelledError("the purge was stopped"); }

  /// False if no call has needed the table yet. A purge does not: it would make the tables of all shards.
  absl::StatusOr<bool> HasTable() {
    if (fleet_.table_maker() == nullptr) return true;
    return fleet_.Run(
        ShardSpace::kMod, table_.shard, Repeat::kAlways, [&](Connection& connection) -> absl::StatusOr<bool> {
          const auto never = fleet_.table_maker()->WasNeverMade(connection, spec_, table_.shard);
          if (!never.ok()) return never.status();
          return !*never;
        });
  }

  /// Waits until the rate allows more, after so many cells. Fails if the purge must end.
  absl::Status WaitForRate(uint64_t cells) {
    const auto due = throttle_.Spend(cells);
    for (;;) {
      if (auto status = CheckCall(); !status.ok()) return status;
      if (!counts_.Report(0)) return Stopped();
      const auto now = Throttle::Clock::now();
      if (now >= due) return absl::OkStatus();
      std::this_thread::sleep_for(std::min<Throttle::Clock::duration>(due - now, kMaxSleep));
    }
  }

  /// Lists the columns of the next cells, in order, into columns_. Returns how many cells these are.
  absl::StatusOr<uint64_t> List() {
    return fleet_.Run(
        ShardSpace::kMod, table_.shard, Repeat::kAlways,
        [&](Connection& connection) -> absl::StatusOr<uint64_t> {
          columns_.clear();
          lowest_live_ = dataset_.LowestLive(connection);
          uint64_t listed = 0;
          Call call = inside_ ? connection.Prepare(Sql::kPurgeRow, table_).Bind(row_).Bind(column_)
                              : connection.Prepare(Sql::kPurgeRows, table_).Bind(row_);
          for (Rows rows = call.Bind(kListedCells).Query(); rows.Next(); ++listed) {
            std::string row = rows.Bytes(1);
            std::string name = rows.Bytes(2);
            if (columns_.empty() || columns_.back().name != name || columns_.back().row != row) {
              columns_.push_back({std::move(row), std::move(name)});
            }
            ++columns_.back().cells;
            columns_.back().oldest = std::min(columns_.back().oldest, rows.Uint(3));
          }
          if (listed == kListedCells) columns_.back().cut = true;
          return listed;
        });
  }

  /// Sets the position after the last column that was listed: the rest of its row comes next, then the rows
  /// after it.
  void Advance(uint64_t listed) {
    if (listed < kListedCells) {  // the row ends here
      inside_ = false;
      row_ = Behind(std::move(row_));
      return;
    }
    row_ = columns_.back().row;
    column_ = Behind(columns_.back().name);
    inside_ = true;
  }

  /// Goes by the settings of the moment in which it deletes: what was put after they were raised is visible.
  absl::Status Trim(const Column& column) {
    const uint64_t lowest = lowest_live_;
    if (column.oldest < lowest || (column.cut && lowest > 0)) {
      const auto deleted = DeleteBelow(Sql::kPurgeExpired, column, [&](Connection& connection) {
        return std::min(lowest, dataset_.LowestLive(connection));
      });
      if (!deleted.ok()) return deleted.status();
      counts_.expired += *deleted;
    }
    const uint64_t kept = dataset_.max_versions;
    if (kept > 0 && (column.cells > kept || column.cut)) {
      const auto deleted = DeleteBelow(Sql::kPurgeSurplus, column, [&](Connection& connection) -> uint64_t {
        const uint64_t keep = dataset_.max_versions;
        if (keep == 0) return 0;
        // Locks the newest cells. While they are there, older ones are surplus, even those that are put
        // later.
        Rows last = connection.Prepare(Sql::kPurgeKeep, table_)
                        .Bind(column.row)
                        .Bind(column.name)
                        .Bind(keep - 1)
                        .Query();
        return last.Next() ? last.Uint(1) : 0;
      });
      if (!deleted.ok()) return deleted.status();
      counts_.surplus += *deleted;
    }
    return absl::OkStatus();
  }

  /// Deletes the column's cells with timestamps below `lowest(connection)`, a few in each transaction.
  /// Returns how many it has deleted.
  template <typename Lowest>
  absl::StatusOr<uint64_t> DeleteBelow(Sql sql, const Column& column, Lowest lowest) {
    uint64_t all = 0;
    for (;;) {
      // Whoever alters the dataset ends the purge by this.
      if (!counts_.Report(0)) return Stopped();
      // A retry calls `lowest` again, and so goes by what is stored by then.
      auto deleted = fleet_.Run(ShardSpace::kMod, table_.shard, Repeat::kAlways,
                                [&](Connection& connection) -> absl::StatusOr<uint64_t> {
                                  Transaction transaction(connection, Transaction::Kind::kWrite);
                                  const uint64_t below = lowest(connection);
                                  const uint64_t count = connection.Prepare(sql, table_)
                                                             .Bind(column.row)
                                                             .Bind(column.name)
                                                             .Bind(below)
                                                             .Bind(kDeletedCells)
                                                             .Execute();
                                  transaction.Commit();
                                  return count;
                                });
      if (!deleted.ok()) return deleted;
      all += *deleted;
      if (*deleted < kDeletedCells) return all;
      if (auto status = WaitForRate(*deleted); !status.ok()) return status;
    }
  }

  Fleet& fleet_;
  const Dataset& dataset_;
  const DatasetSpec& spec_;
  const Table table_;
  Throttle& throttle_;
  Counts& counts_;
  // The position: if inside_, in row_ from column_ on; else at the first row from row_ on.
  bool inside_ = false;
  std::string row_;
  std::string column_;
  std::vector<Column> columns_;
  uint64_t lowest_live_ = 0;  // when the columns were listed
};

}  // namespace

absl::StatusOr<DatasetStats> MeasureDataset(Fleet& fleet, const DatasetSpec& spec) {
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> entries{0};
  const ShardSpace space = SpaceOf(spec.shape);
  const absl::Status status = fleet.OnAllShards(space, [&](const Host& host, uint32_t shard) {
    return fleet.RunOn(host, Place{space, shard}, Repeat::kAlways,
                       [&](Connection& connection) -> absl::Status {
                         const TableSize size = MeasureTable(connection, spec, shard);
                         bytes += size.bytes;
                         entries += size.entries;
                         return absl::OkStatus();
                       });
  });
  if (!status.ok()) return status;
  return DatasetStats{.approximate_bytes = bytes, .approximate_entries = entries};
}

absl::StatusOr<ReclaimResult> Purge(Fleet& fleet, const Dataset& dataset, const DatasetSpec& spec,
                                    const Progress& progress) {
  const auto before = MeasureDataset(fleet, spec);
  if (!before.ok()) return before.status();
  const uint64_t bytes_per_cell =
      before->approximate_bytes / std::max<uint64_t>(before->approximate_entries, 1) + 1;
  Counts counts(progress, before->approximate_bytes);
  Mutex mutex;  // guards throttles
  std::map<Host, Throttle> throttles;
  const absl::Status status = fleet.OnAllShards(ShardSpace::kMod, [&](const Host& host, uint32_t shard) {
    Throttle* throttle = nullptr;
    {
      const MutexLock lock(mutex);
      throttle = &throttles.try_emplace(host, fleet.options().purge_cells_per_s).first->second;
    }
    return ShardPurge(fleet, dataset, spec, shard, *throttle, counts).Run(bytes_per_cell);
  });
  if (!status.ok()) return status;
  const auto after = MeasureDataset(fleet, spec);
  if (!after.ok()) return after.status();
  return ReclaimResult{.bytes_before = before->approximate_bytes,
                       .bytes_after = after->approximate_bytes,
                       .expired_cells = counts.expired,
                       .surplus_cells = counts.surplus};
}

}  // namespace kvstore::mysql
