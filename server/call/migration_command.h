#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "json/json.h"
#include "server/call/call.h"

namespace kvstore::server {

/// Carries out a command of a migration (Migrations::Command) for a caller whose right on the dataset was
/// checked, and returns its status. A list has only migrations of datasets that the caller may administer.
/// UNIMPLEMENTED if the server migrates nothing.
///
/// dataset    The command is for this one, whatever it names itself; "*": a list of all.
/// principal  Null: everybody may do everything.
absl::StatusOr<Json> CommandMigration(Core& core, const Principal* principal, const std::string& dataset,
                                      Json command);

}  // namespace kvstore::server
