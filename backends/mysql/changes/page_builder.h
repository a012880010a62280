#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/mysql/changes/log_position.h"
#include "backends/mysql/changes/row_events.h"
#include "backends/mysql/driver/tables.h"
#include "kvstore_api/dataset.h"

namespace kvstore::mysql {

/// The tables of a dataset, as a log names them.
struct DatasetTables {
  ShardSpace space = ShardSpace::kId;
  std::string name;  ///< The name of the dataset's table in each shard.
  Shape shape = Shape::kRows;
  uint32_t type = 0;  ///< In the IDs of objects.
  /// The gtid_domain_ids of the pairs that the follower reads, and the time before which it has all. A shard
  /// that was moved since must come from one of these.
  std::set<uint32_t> domains = {};
  uint64_t whole_ms = 0;
  /// Returns whether the map in force still has a shard here whose tables a move has put away, so that what
  /// is written elsewhere since is not followed yet. Null: it has not.
  std::function<bool(uint32_t shard)> awaits_map = nullptr;

  bool Has(const LoggedTable& table) const { return table.name == name && table.Shard(space).has_value(); }
};

/// A unit that a transaction has touched.
struct LoggedUnit {
  std::string key;
  uint64_t at_ms = 0;
  LogPlace after;  ///< The place after it.
};

/// Makes a page of touched units of the transactions after a place, in the order of a log. Externally
/// synchronised.
class PageBuilder {
 public:
  /// limit      How many units the page has at most.
  /// in_middle  Whether what comes next is what is after the place, in the middle of a transaction. If not,
  ///            that transaction comes again from its beginning.
  PageBuilder(const DatasetTables& tables, LogPlace place, size_t limit, bool in_middle)
      : tables_(tables), place_(std::move(place)), limit_(limit), seen_(in_middle ? place_.rows : 0) {}

  bool full() const { return units_.size() >= limit_; }
  /// Returns the place after all that was read, which may be in the middle of a transaction, after some rows.
  const LogPlace& place() const { return place_; }
  std::vector<LoggedUnit>& units() { return units_; }

  /// A transaction that is not before the place begins.
  void Begin(const LogGtid& gtid, uint64_t at_ms);
  /// The transaction in whose middle the page begins goes on.
  void Resume(const LogGtid& gtid) { gtid_ = gtid; }
  /// Adds rows, as many as the page takes; returns how many were dealt with.
  absl::StatusOr<size_t> Add(const LoggedTable& table, std::span<const TouchedRow> rows);
  /// Checks a statement that is no row event. One that does not name the dataset's table in a shard's
  /// database is not looked at. OUT_OF_RANGE if the dataset's tables were exchanged by it, so that the log
  /// does not tell what has changed; or if it begins to copy shards from a pair (CopyMark) whose log the
  /// follower does not read. FAILED_PRECONDITION if it is a write that should have been logged as rows.
  absl::Status Check(const LoggedStatement& logged, bool standalone) const;
  /// Whether nothing after a statement may be told yet: it puts the dataset's tables of a shard away, and
  /// DatasetTables::awaits_map says that the map does not know.
  bool Holds(std::string_view statement) const;
  void Commit(const LogGtid& gtid);

 private:
  const DatasetTables& tables_;
  LogPlace place_;
  const size_t limit_;
  uint64_t seen_ = 0;  // rows of the transaction
  LogGtid gtid_;
  bool has_last_ = false;  // the last unit is of this transaction
  std::vector<LoggedUnit> units_;
};

}  // namespace kvstore::mysql
