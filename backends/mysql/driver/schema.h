#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "backends/mysql/driver/connection.h"
#include "backends/mysql/driver/tables.h"
#include "kvstore_api/dataset.h"

/// Databases and tables, made from the templates in sql/. The comment of a table names the incarnation of its
/// dataset. fleet/shard_tables.h and units/migration_tables.h decide when tables may be made and removed.
///
/// Functions that take a Connection throw sql::SQLException.
namespace kvstore::mysql {

/// Returns the shard space in which datasets of this shape lie.
ShardSpace SpaceOf(Shape shape);

/// Returns INVALID_ARGUMENT unless DatasetSpec::engine is empty, "innodb" or "myrocks".
absl::Status ValidateEngine(const DatasetSpec& spec);
/// Whether the dataset's engine can keep a part of a key in descending order.
bool HasDescendingKeys(const DatasetSpec& spec);
/// Returns the server's name of the dataset's storage engine: "InnoDB" or "ROCKSDB".
std::string EngineName(const DatasetSpec& spec);

/// Makes a shard's database, and on mod shards its clock, unless they are there.
///
/// mod_shards  how many mod shards there are; stored in a mod shard's database, for ReadModShards.
void CreateShard(Connection& connection, ShardSpace space, uint32_t shard, uint32_t mod_shards);
/// Returns how many mod shards there were when this one was made; 0 if this one is not there.
uint32_t ReadModShards(Connection& connection, uint32_t shard);

/// The beginning of a comment that a move of shards leaves in the binary log of the pair that gets them,
/// before it copies them. Behind it stands the gtid_domain_id of the pair that has them. Those who follow
/// changes (changes/page_builder.h) know by it which log they must have read.
inline constexpr std::string_view kCopyMark = "kvstore: copied from the pair with the domain ";
/// Makes a shard's empty database, and leaves that comment.
void CreateDatabaseOfCopy(Connection& connection, const std::string& database, uint64_t from_domain);

/// Whether the shard's tables on this server were put away (MovedName), because the shard is moving to
/// another host or has moved there.
bool HasMoved(Connection& connection, ShardSpace space, uint32_t shard);

/// Whether the dataset of this table is being migrated on this shard.
bool HasMigration(Connection& connection, const Table& table);

/// Returns the comment of the tables of this incarnation of the dataset.
std::string TableComment(const DatasetSpec& spec);

/// Returns the incarnation that a table's comment names; nullopt if it is no dataset's table.
std::optional<uint64_t> IncarnationOf(std::string_view comment);

/// Makes a dataset's table. The server's error if there is a table of that name.
void CreateTable(Connection& connection, const DatasetSpec& spec, uint32_t shard);
/// Removes the table that has the dataset's table name, if there is one, whichever dataset it belongs to.
void DropTable(Connection& connection, const DatasetSpec& spec, uint32_t shard);

/// The approximate size of a table; 0 and 0 for a table that is not there.
struct TableSize {
  uint64_t bytes = 0;
  uint64_t entries = 0;
};
/// Measures the dataset's table on a shard, as the server estimates it now.
TableSize MeasureTable(Connection& connection, const DatasetSpec& spec, uint32_t shard);

}  // namespace kvstore::mysql
