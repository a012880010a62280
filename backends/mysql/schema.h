#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "backends/mysql/connection.h"
#include "backends/mysql/tables.h"
#include "kvstore_api/dataset.h"

/// Databases and tables, made from the templates in sql/. A table carries the incarnation of its dataset in
/// its comment. Who may make and remove them when: shard_tables.h and move_schema.h.
///
/// What takes a Connection throws sql::SQLException.
namespace kvstore::mysql {

/// Which shards have the data of a dataset of this shape.
Space SpaceOf(Shape shape);

/// INVALID_ARGUMENT unless the engine is one that we know.
absl::Status ValidateEngine(const DatasetSpec& spec);
/// Whether the engine's keys can be in descending order.
bool HasDescendingKeys(const DatasetSpec& spec);
/// As the server calls the dataset's storage engine.
std::string EngineName(const DatasetSpec& spec);

/// Makes a shard's database, if it is not there.
///
/// mod_shards  how many mod shards there are; kept in the database, for CheckModShards.
void CreateShard(Connection& connection, Space space, uint32_t shard, uint32_t mod_shards);
/// How many mod shards there were when this one was made; 0: it is not there.
uint32_t ReadModShards(Connection& connection, uint32_t shard);

/// Whether the shard's tables were put away there (MovedName), because the shard is on another host.
bool HasMoved(Connection& connection, Space space, uint32_t shard);

/// What the tables of this incarnation of the dataset have as their comment.
std::string TableComment(const DatasetSpec& spec);

/// What a table with that comment is of; nullopt: of no dataset.
std::optional<uint64_t> IncarnationOf(std::string_view comment);

/// Makes a dataset's table, which must not be there.
void CreateTable(Connection& connection, const DatasetSpec& spec, uint32_t shard);
/// Removes the table of that name, whosever it is, if there is one.
void DropTable(Connection& connection, const DatasetSpec& spec, uint32_t shard);

/// Bytes and entries, about; both are 0 for a table that is not there.
struct TableSize {
  uint64_t bytes = 0;
  uint64_t entries = 0;
};
TableSize MeasureTable(Connection& connection, const DatasetSpec& spec, uint32_t shard);

}  // namespace kvstore::mysql
