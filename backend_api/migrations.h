#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kvstore_api/json.h"
#include "kvstore_api/metrics_sink.h"

namespace kvstore {

/// What moves datasets between backends, as operators command it: `kv migrate`. Thread-safe.
class Migrations {
 public:
  virtual ~Migrations() = default;

  /// Carries out a command and gives the migration's status, or a list of them. docs/migrating.md has the
  /// commands, their options and what a status holds.
  ///
  /// command  {"command": "create", "dataset": "events", "who": "ann@ops1", ...options}
  ///
  /// FAILED_PRECONDITION says why it is not possible now, and what is; NOT_FOUND that the dataset does not
  /// migrate.
  [[nodiscard]] virtual absl::StatusOr<Json> Command(const Json& command) = 0;
  /// How far each migration of this process is.
  virtual void Describe(MetricsSink&) const {}
};

}  // namespace kvstore
