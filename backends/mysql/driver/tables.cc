#include "backends/mysql/driver/tables.h"

#include <fmt/format.h>

namespace kvstore::mysql {

std::string DatabaseName(ShardSpace space, uint32_t shard) {
  return fmt::format("{}{:05}", ShardSpaceName(space), shard);
}

std::string MovedName(const std::string& database) { return database + "_moved"; }

std::string Quote(std::string_view identifier) {
  std::string quoted = "`";
  for (const char c : identifier) {
    if (c == '`') quoted += '`';
    quoted += c;
  }
  return quoted + '`';
}

std::string Behind(std::string bytes) {
  bytes.push_back('\0');
  return bytes;
}

std::string Table::QualifiedName() const {
  return fmt::format("{}.{}", Quote(DatabaseName(family->space, shard)), Quote(family->name));
}

std::string StateTable(const Table& table) {
  return fmt::format("{}.{}", Quote(DatabaseName(table.family->space, table.shard)),
                     Quote(table.family->Beside("state")));
}

std::string DirtyTable(const Table& table) {
  return fmt::format("{}.{}", Quote(DatabaseName(table.family->space, table.shard)),
                     Quote(table.family->Beside("dirty")));
}

}  // namespace kvstore::mysql
