#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "json/json.h"
#include "json/json_fields.h"
#include "json/json_form.h"
#include "kvstore_api/types.h"
#include "reports/reports.h"
#include "server/call/call.h"
#include "server/call/operation.h"
#include "server/http/target.h"

namespace kvstore::server {

/// The request of an operation about the server itself, and all that the operation may use.
struct ServedRequest {
  Core& core;
  /// The caller. Null if the server has no list of tokens, or if the operation needs no right and the caller
  /// has not said who it is.
  const Principal* principal;
  std::string peer;  ///< As CallTransport::Peer.
  const Json& request;
  JsonFields& fields;  ///< The fields of the request.
  const Progress& progress;
  /// Returns the reports of a dataset as the caller sees them.
  const std::function<std::unique_ptr<reports::Reports>(const std::string& dataset)>& reports_of;
};

/// An operation that can be asked for as JSON: its name, what it needs, and its form.
struct JsonOperation {
  std::string name;  ///< "get_row"
  Operation operation = Operation::kGetServer;
  JsonForm form;
  /// Carries out an operation about the server itself. Null: json_api does (ExecuteOperation).
  std::function<absl::StatusOr<Json>(const ServedRequest& request)> serve;
  /// Makes the request of the parameters of a query or a form. Null: a body is the request as JSON.
  std::function<absl::StatusOr<Json>(const Parameters& parameters)> read = nullptr;
  /// Returns the whole answer, for protocols that have a form of their own. Null: our own form.
  std::function<Json(const absl::StatusOr<Json>& answer)> wrap = nullptr;
};

/// By their names. A value that lives as long as the process.
using JsonOperations = std::map<std::string, JsonOperation, std::less<>>;

/// Returns all operations in JSON. One that is not here cannot be asked for, and each has the right of its
/// line in backend_api/operations.def.
const JsonOperations& AllJsonOperations();

/// Returns the error for a name that no operation has, with those that somebody may have meant by it.
absl::Status NoSuchOperationError(std::string_view name);

/// Returns Core::instance in hexadecimal digits.
std::string InstanceText(const Core& core);

/// Returns the operations about the server itself: the server, its figures, its migrations, backups and shard
/// maps.
std::vector<JsonOperation> ServerOperations();

}  // namespace kvstore::server
