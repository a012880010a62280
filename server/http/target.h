#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::server {

/// What a request asks for, decoded: "/v1/datasets/a%2Fb?limit=5" has the path {"v1", "datasets", "a/b"}.
struct Target {
  std::vector<std::string> path;                           ///< Any bytes. At least one; perhaps empty ones.
  std::vector<std::pair<std::string, std::string>> query;  ///< Names and values in their order; any bytes.
};

/// Parses the target of a request: a path with its query, or a whole URL, of which the host is left out. A
/// "+" in the query is a space, as forms encode it. INVALID_ARGUMENT if it has an escape that is none, or
/// another form.
absl::StatusOr<Target> ParseTarget(std::string_view text);

}  // namespace kvstore::server
