#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "json/json.h"

namespace kvstore {

/// Receives what an operation on shards reports while it goes on. Each of them may be null; one thread at a
/// time calls them.
struct ShardEvents {
  /// A line of text for the operator about a step that was done.
  std::function<void(const std::string& line)> line;
  /// How far a step ("copy", "compare", "switch", ...) is, and how much it is in all; 0: not known. Returns
  /// false to have the operation stop where it leaves nothing unusable. It ends with CANCELLED then, and what
  /// it has done stays done.
  std::function<bool(std::string_view step, uint64_t done, uint64_t total)> progress;
};

/// The operators' interface to the fleet: the commands of `kv shards` that inspect or change it.
/// Thread-safe.
class ShardOperations {
 public:
  virtual ~ShardOperations() = default;

  /// Carries out a command, and returns its answer, a JSON object with the fields that `kv shards ... --json`
  /// prints and some more. shards.proto has the commands and their options, under the same names.
  ///
  /// command  {"command": "promote", "host": "MySQL001B", "dry_run": true}. "who" says in whose name the
  ///          operation is recorded; without it, in that of this process.
  ///
  /// An operation that does not end with OK may have done some of its work; its message says what to do.
  /// FAILED_PRECONDITION if it is not possible now, or the configuration lacks what it needs;
  /// INVALID_ARGUMENT if the command is wrong.
  [[nodiscard]] virtual absl::StatusOr<Json> Operate(const Json& command, const ShardEvents& events) = 0;
};

}  // namespace kvstore
