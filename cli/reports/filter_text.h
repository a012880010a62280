#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/query.h"

/// Filters as they are written on the command line. A \ in front of a character takes away its meaning.
namespace kvstore::cli {

using Where = std::map<std::string, std::optional<std::vector<std::string>>>;

/// "country=US,CA;gender=*": the values that match of each segment key; * alone is any. INVALID_ARGUMENT for
/// anything else.
absl::StatusOr<Where> ParseWhere(std::string_view text);
/// "NAME:country=US,CA;gender=*"; the conditions may be empty.
absl::StatusOr<reports::QueryFilter> ParseFilter(std::string_view text);
/// Adds conditions to others; INVALID_ARGUMENT for a key that is there already.
absl::Status AddWhere(const Where& more, Where& where);

}  // namespace kvstore::cli
