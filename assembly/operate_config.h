#pragma once

#include <filesystem>

#include "json/json_fields.h"
#include "operate/options.h"

namespace kvstore {

/// Reads the object "operate" of a configuration, and records its mistakes.
///
/// folder  relative paths begin here.
void ReadOperateOptions(JsonFields& fields, const std::filesystem::path& folder,
                        operate::OperateOptions& options);

}  // namespace kvstore
