#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Where data lies: shards are databases, and a dataset is a table of the same name in each of its space.
namespace kvstore::mysql {

/// The two shard spaces: by ID (objects, mappings), and by hash of a key (rows).
enum class Space : uint8_t { kId, kMod };

/// "db03429", "mod00017".
std::string DatabaseName(Space space, uint32_t shard);

/// Where the tables of a shard's database stay when it has moved to another host: "db03429_moved".
std::string MovedName(const std::string& database);

/// Between backquotes.
std::string Quote(std::string_view identifier);

/// The first string behind `bytes` in byte order: where a list goes on.
std::string Behind(std::string bytes);

/// The tables of one dataset.
struct TableFamily {
  uint32_t number = 0;  ///< Tells families apart where statements are kept.
  Space space = Space::kId;
  std::string name;
  /// Rows: the key has timestamps in ascending order, because the engine has no descending keys.
  bool newest_last = false;

  /// The dataset's: `name` without what a migration adds to it (move_schema.h).
  std::string BaseName() const { return name.substr(0, name.find('$')); }
  /// What a migration keeps beside the dataset's table: "events$state". Others on MyRocks, so that a dataset
  /// can move from engine to engine in one place: "events$r$state".
  std::string Beside(std::string_view what) const {
    return BaseName() + (newest_last ? "$r$" : "$") + std::string(what);
  }
};

/// One of them. The family must outlive it.
struct Table {
  const TableFamily* family = nullptr;
  uint32_t shard = 0;

  /// "`db03429`.`pins`"
  std::string QualifiedName() const;
};

}  // namespace kvstore::mysql
