#pragma once

#include <filesystem>

#include "json/json_fields.h"
#include "server/call/options.h"

namespace kvstore {

/// Reads the field "server" of a configuration: how a store is served, whatever the store is. Fields that are
/// missing leave `server` as it is; mistakes are recorded in `fields`.
///
/// folder  relative paths begin here.
void ReadServerOptions(JsonFields& fields, const std::filesystem::path& folder, ServerOptions& server);

}  // namespace kvstore
