#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "json/json.h"

/// Reads the status of a migration for the commands of `kv migrate`. It is JSON as of migration::StatusJson,
/// from this process or a server.
namespace kvstore::cli {

/// Returns a command of `kv migrate` as one types it; arguments that only the operator knows are in capitals.
std::string WithArguments(const std::string& command, const std::string& dataset);

/// Whether nothing happens any more until an operator gives a command: the migration waits for one, or has
/// ended. False while the worker still has to carry out what was asked for, which it also does while the
/// migration is paused.
bool WaitsForOperator(const Json& status);

/// Whether it waits because its copying is paused. Work that a command has begun is then not done.
bool WaitsForResume(const Json& status);

/// The status as text, for people.
std::string StatusText(const Json& status);

/// Returns the share of reads that a percentage such as "1%" or "0.05%" names, in millionths; nothing for
/// other text.
std::optional<uint64_t> ParseShare(const std::string& text);
/// Returns why the exit code of `kv migrate repair` is not 0, given its answer: a person must decide,
/// something is left to be done, or is wrong and not mended. Empty: all is well.
std::string RepairProblem(const Json& answer);
/// Returns the answer to `kv migrate repair`, as lines for a person.
std::string RepairText(const Json& answer);

}  // namespace kvstore::cli
