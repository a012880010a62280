#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "console/console.h"
#include "json/json.h"
#include "server/http/json_operations.h"

namespace kvstore::server {

/// The destination of a request: an operation, a stream, a page or an error.
struct Route {
  enum class Kind {
    kOperation,  ///< `operation`, by POST with its fields in the body, or by GET with them in `request`.
    kExec,       ///< Requests as lines of JSON.
    kChanges,    ///< The changes of a dataset as they come: "dataset" and "from" in `request`.
    kOpenApi,
    kHealthz,
    kReadyz,
    kConsole,  ///< A file of the console: `file`.
    kError,    ///< There is no such thing: `error`.
  };

  Kind kind = Kind::kError;
  const JsonOperation* operation = nullptr;
  std::optional<Json> request;  ///< The fields of a GET.
  Parameters parameters;        ///< The parameters in the target of a POST of a form.
  const ConsoleFile* file = nullptr;
  int status = 0;          ///< The HTTP status of an error.
  absl::Status error;      ///< The error of kError, or of an operation whose request is wrong.
  std::string_view allow;  ///< The method that the path takes, where the request has another one.
};

/// Finds what a request asks for.
///
/// target  As it came, escaped.
Route FindRoute(std::string_view method, std::string_view target);

}  // namespace kvstore::server
