#pragma once

#include "absl/status/statusor.h"
#include "json/json.h"
#include "kvstore/v1/kvstore.pb.h"

namespace kvstore::server {

/// Returns the command of a request in the form of Migrations::Command: the one that its `verb` is, or,
/// without one, its text in JSON. INVALID_ARGUMENT if it has neither, or the text is no JSON object.
absl::StatusOr<Json> MigrateCommandOf(const v1::MigrateRequest& request);

}  // namespace kvstore::server
