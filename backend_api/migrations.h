#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/metrics_sink.h"
#include "json/json.h"

namespace kvstore {

/// The operators' interface to migrations of datasets between backends: `kv migrate`. Thread-safe.
class Migrations {
 public:
  virtual ~Migrations() = default;

  /// Carries out a command, and returns the migration's status or a list of them. docs/migrating.md has the
  /// commands, their options, and the fields of a status.
  ///
  /// command  {"command": "create", "dataset": "events", "who": "ann@ops1", ...options}
  ///
  /// FAILED_PRECONDITION if the command is not possible now; the message says why, and which are. NOT_FOUND
  /// if the dataset does not migrate.
  [[nodiscard]] virtual absl::StatusOr<Json> Command(const Json& command) = 0;
  /// Reports metrics of the migrations that run in this process.
  virtual void Describe(MetricsSink&) const {}
};

}  // namespace kvstore
