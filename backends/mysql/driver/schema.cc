#include "backends/mysql/driver/schema.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <charconv>

#include "backends/mysql/driver/sql_templates.h"

namespace kvstore::mysql {
namespace {

constexpr int kDatabaseIsMissing = 1008;
constexpr std::string_view kMyRocks = "myrocks";
constexpr std::string_view kIncarnationComment = "kvstore incarnation=";
constexpr std::string_view kModShardsComment = "kvstore mod_shards=";

/// Quotes a name for SQL. Names of tables have letters, digits, '_', '-', '.' and '@' only, so that nothing
/// needs an escape.
std::string Literal(std::string_view text) { return fmt::format("'{}'", text); }

const char* Template(Shape shape) {
  switch (shape) {
    case Shape::kObjects:
      return kObjectsSql;
    case Shape::kMappings:
      return kMappingsSql;
    case Shape::kRows:
      break;
  }
  return kRowsSql;
}

/// Returns the comment of a table; nullopt if there is no such table.
std::optional<std::string> ReadComment(Connection& connection, ShardSpace space, uint32_t shard,
                                       std::string_view table) {
  Rows rows = connection.Ask(fmt::format(
      "SELECT table_comment FROM information_schema.tables WHERE table_schema = {} AND table_name = {}",
      Literal(DatabaseName(space, shard)), Literal(table)));
  if (!rows.Next()) return std::nullopt;
  return rows.Bytes(1);
}

std::string NameOf(const DatasetSpec& spec, uint32_t shard) {
  return fmt::format("{}.{}", Quote(DatabaseName(SpaceOf(spec.shape), shard)), Quote(TableName(spec)));
}

}  // namespace

bool HasMigration(Connection& connection, const Table& table) {
  Rows rows = connection.Ask(fmt::format(
      "SELECT 1 FROM information_schema.tables WHERE table_schema = '{0}' AND table_name IN ('{1}$state', "
      "'{1}$r$state')",
      DatabaseName(table.family->space, table.shard), table.family->BaseName()));
  return rows.Next();
}

std::string TableComment(const DatasetSpec& spec) {
  return fmt::format("{}{}", kIncarnationComment, spec.incarnation);
}

std::optional<uint64_t> IncarnationOf(std::string_view comment) {
  if (!comment.starts_with(kIncarnationComment)) return std::nullopt;
  comment.remove_prefix(kIncarnationComment.size());
  uint64_t incarnation = 0;
  const auto [end, error] = std::from_chars(comment.data(), comment.data() + comment.size(), incarnation);
  if (error != std::errc() || end != comment.data() + comment.size()) return std::nullopt;
  return incarnation;
}

std::string EngineName(const DatasetSpec& spec) { return spec.engine == kMyRocks ? "ROCKSDB" : "InnoDB"; }

ShardSpace SpaceOf(Shape shape) { return shape == Shape::kRows ? ShardSpace::kMod : ShardSpace::kId; }

absl::Status ValidateEngine(const DatasetSpec& spec) {
  if (spec.engine.empty() || spec.engine == "innodb" || spec.engine == kMyRocks) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("engine: '{}' is not one of innodb, myrocks", spec.engine));
}

bool HasDescendingKeys(const DatasetSpec& spec) { return spec.engine != kMyRocks; }

void CreateShard(Connection& connection, ShardSpace space, uint32_t shard, uint32_t mod_shards) {
  const std::string database = Quote(DatabaseName(space, shard));
  connection.Run(fmt::format(fmt::runtime(kDatabaseSql), fmt::arg("database", database)));
  if (space == ShardSpace::kId) return;
  connection.Run(fmt::format(fmt::runtime(kClockSql), fmt::arg("database", database),
                             fmt::arg("comment", fmt::format("{}{}", kModShardsComment, mod_shards))));
}

void CreateDatabaseOfCopy(Connection& connection, const std::string& database, uint64_t from_domain) {
  connection.Run(fmt::format(fmt::runtime(kDatabaseSql), fmt::arg("database", Quote(database))) +
                 fmt::format(" /* {}{} */", kCopyMark, from_domain));
}

uint32_t ReadModShards(Connection& connection, uint32_t shard) {
  const auto comment = ReadComment(connection, ShardSpace::kMod, shard, kClockTable);
  uint32_t count = 0;
  if (comment && comment->starts_with(kModShardsComment)) {
    std::from_chars(comment->data() + kModShardsComment.size(), comment->data() + comment->size(), count);
  }
  return count;
}

bool HasMoved(Connection& connection, ShardSpace space, uint32_t shard) {
  const std::string database = DatabaseName(space, shard);
  // A move takes all tables away at once. A database that has some holds a shard that has come back, and what
  // is put away is left from its earlier stay.
  return connection
      .Ask(fmt::format("SELECT 1 FROM information_schema.schemata WHERE schema_name = {} AND NOT EXISTS "
                       "(SELECT 1 FROM information_schema.tables WHERE table_schema = {})",
                       Literal(MovedName(database)), Literal(database)))
      .Next();
}

void CreateTable(Connection& connection, const DatasetSpec& spec, uint32_t shard) {
  const ShardSpace space = SpaceOf(spec.shape);
  const std::string create =
      fmt::format(fmt::runtime(Template(spec.shape)), fmt::arg("database", Quote(DatabaseName(space, shard))),
                  fmt::arg("table", Quote(TableName(spec))), fmt::arg("engine", EngineName(spec)),
                  fmt::arg("comment", TableComment(spec)),
                  fmt::arg("key_order", HasDescendingKeys(spec) ? "DESC" : "ASC"));
  connection.Run(create);
}

void DropTable(Connection& connection, const DatasetSpec& spec, uint32_t shard) {
  try {
    connection.Run("DROP TABLE IF EXISTS " + NameOf(spec, shard));
  } catch (const sql::SQLException& error) {
    if (error.getErrorCode() != kDatabaseIsMissing) throw;
  }
}

TableSize MeasureTable(Connection& connection, const DatasetSpec& spec, uint32_t shard) {
  // Without this the server may return figures of any age.
  connection.Ask("ANALYZE LOCAL TABLE " + NameOf(spec, shard));
  Rows rows = connection.Ask(
      fmt::format("SELECT data_length + index_length, table_rows FROM information_schema.tables "
                  "WHERE table_schema = {} AND table_name = {}",
                  Literal(DatabaseName(SpaceOf(spec.shape), shard)), Literal(TableName(spec))));
  if (!rows.Next()) return {};
  return {rows.Uint(1), rows.Uint(2)};
}

}  // namespace kvstore::mysql
