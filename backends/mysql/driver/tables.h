#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvstore_api/shard_space.h"

/// Where data lies: a shard is a database, and a dataset is a table of one name in each shard of its space.
namespace kvstore::mysql {

/// Returns the name of a shard's database: "db03429", "mod00017".
std::string DatabaseName(ShardSpace space, uint32_t shard);

/// Returns the name of the database into which the tables of a shard are put away when the shard moves to
/// another host: "db03429_moved".
std::string MovedName(const std::string& database);

/// Quotes an identifier for SQL, with backquotes.
std::string Quote(std::string_view identifier);

/// Returns the next string after `bytes` in byte order, at which a list continues.
std::string Behind(std::string bytes);

/// The tables of one dataset.
struct TableFamily {
  uint32_t number = 0;  ///< Unique in the process: the key under which prepared statements are kept.
  ShardSpace space = ShardSpace::kId;
  std::string name;
  /// Rows: timestamps in the key ascend, so that the newest cell comes last, because the engine has no
  /// descending keys.
  bool newest_last = false;

  /// Returns the dataset's table name: `name` without what a migration adds (units/migration_tables.h).
  std::string BaseName() const { return name.substr(0, name.find('$')); }
  /// Returns the name of what a migration keeps beside the dataset's table: "events$state". On MyRocks it is
  /// "events$r$state", so that a dataset can migrate from engine to engine on the same servers.
  std::string Beside(std::string_view what) const {
    return BaseName() + (newest_last ? "$r$" : "$") + std::string(what);
  }
};

/// The table of a dataset on one shard. The family must outlive it.
struct Table {
  const TableFamily* family = nullptr;
  uint32_t shard = 0;

  /// "`db03429`.`pins`"
  std::string QualifiedName() const;
};

/// Follows the dataset's name in the name of a table that is being made on first use
/// (fleet/shard_tables.h: MakeOnFirstUse).
inline constexpr std::string_view kNewSuffix = "$new";

// ---- what migrations make beside a table: units/migration_tables.h ----

/// Returns "`mod00001`.`events$state`". `table` may have either of the dataset's two table names.
std::string StateTable(const Table& table);
/// Returns "`mod00001`.`events$dirty`", likewise.
std::string DirtyTable(const Table& table);

/// The text of error kSignalled, with which the triggers of a frozen table refuse a write.
inline constexpr char kFrozenMessage[] = "kvstore: the dataset is about to move, writes are held";
inline constexpr int kSignalled = 1644;

}  // namespace kvstore::mysql
