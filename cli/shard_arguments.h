#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"
#include "kvstore_api/shard_space.h"
#include "shardmap/shard_map.h"
#include "shardops/maps.h"
#include "shardops/move_record.h"

/// Arguments of `kv shards` that name shards and hosts. They are checked here, so that a mistake is wrong
/// usage before anything is asked.
namespace kvstore::cli {

/// Adds --mod, which sets `space` to the mod shards. `space` must live as long as the command.
CLI::Option* AddModFlag(CLI::App& command, ShardSpace& space, const std::string& description);
/// Parses "0-511". Throws as WrongUsage; Failure if there cannot be such shards.
shardops::MoveRange ParseRange(const std::string& text, ShardSpace space);
/// Parses a host as it is written in shard maps. Throws as WrongUsage.
Host ParseHost(const std::string& text);
/// Parses "HOST,HOST", the value of an option. Throws as WrongUsage.
shardops::Pair ParsePair(std::string_view option, const std::string& text);

/// Adds the options of a command that name shards.
void AddRangeTo(Json& command, const shardops::MoveRange& range);
/// Adds an option that is a host or a pair; nothing if it was not given. Throws as WrongUsage.
void AddHostTo(Json& command, const char* option, const std::string& text);
void AddPairTo(Json& command, const char* option, const std::string& text);

}  // namespace kvstore::cli
