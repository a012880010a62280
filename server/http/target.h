#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::server {

/// Names and values in their order; any bytes.
using Parameters = std::vector<std::pair<std::string, std::string>>;

/// The path and query of a request, decoded: the path of "/v1/datasets/a%2Fb?limit=5" is {"v1", "datasets",
/// "a/b"}, and its query has one parameter.
struct Target {
  std::vector<std::string> path;  ///< Any bytes. At least one; perhaps empty ones.
  Parameters query;
};

/// Parses the target of a request: a path with its query, or a whole URL, of which the host is left out. A
/// "+" in the query is a space, as forms encode it. INVALID_ARGUMENT if it has an escape that is none, or
/// another form.
absl::StatusOr<Target> ParseTarget(std::string_view text);

/// Parses what a form sends: "query=up&time=1". INVALID_ARGUMENT if it has an escape that is none.
absl::StatusOr<Parameters> ParseForm(std::string_view text);

}  // namespace kvstore::server
