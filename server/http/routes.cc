#include "server/http/routes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "json/bytes_json.h"
#include "kvstore_api/changes.h"
#include "server/http/http_answer.h"
#include "server/http/prometheus.h"
#include "server/http/request_head.h"
#include "server/http/target.h"

namespace kvstore::server {
namespace {

constexpr std::string_view kGet = "GET";
constexpr std::string_view kPost = "POST";

Route ErrorRoute(const absl::Status& error) {
  Route route;
  route.status = HttpStatusOf(error);
  route.error = error;
  return route;
}

Route WrongMethod(std::string_view allow) {
  Route route;
  route.status = 405;
  route.error = absl::InvalidArgumentError(fmt::format("method: this path takes {}", allow));
  route.allow = allow;
  return route;
}

/// Returns the route of a path that has no parameters and takes one method.
Route PlainRoute(Route::Kind kind, std::string_view allow, std::string_view method) {
  const bool is_probe =
      (kind == Route::Kind::kHealthz || kind == Route::Kind::kReadyz) && method == kHeadMethod;
  if (method != allow && !is_probe) return WrongMethod(allow);
  Route route;
  route.kind = kind;
  return route;
}

/// Returns the values of the parameters of a template's path, by their names, if the path is one of it.
std::optional<Json> Match(std::string_view form, const std::vector<std::string>& path) {
  Json values = Json::object();
  for (const std::string& segment : path) {
    if (!form.starts_with('/')) return std::nullopt;
    form.remove_prefix(1);
    const std::string_view expected = form.substr(0, form.find('/'));
    form.remove_prefix(expected.size());
    if (expected.starts_with('{')) {
      values[std::string(expected.substr(1, expected.size() - 2))] = BytesToJson(segment);
    } else if (expected != segment) {
      return std::nullopt;
    }
  }
  if (!form.empty()) return std::nullopt;
  return values;
}

std::string_view TypeOf(const JsonForm& form, std::string_view name) {
  for (const JsonFormField& field : form.request) {
    if (field.name == name) return field.type;
  }
  return {};
}

/// Adds the parameters of the query to the request. A parameter that is given again is the next element of a
/// list.
absl::Status AddQuery(const JsonForm& form, const Target& target, Json& request) {
  for (const auto& [name, value] : target.query) {
    const Json named = BytesToJson(name);
    if (!named.is_string())
      return absl::InvalidArgumentError("query: a parameter has a name that is not UTF-8");
    const std::string_view type = TypeOf(form, name);
    Json& field = request[name];
    if (type == "BytesList") {
      field.push_back(BytesToJson(value));
      continue;
    }
    if (!field.is_null()) return absl::InvalidArgumentError(fmt::format("{}: is given twice", name));
    if (type == "Flag" && (value == "true" || value == "false")) {
      field = value == "true";
    } else {
      field = BytesToJson(value);
    }
  }
  return absl::OkStatus();
}

/// Returns the operation that this path asks for by a GET; an error if there is none.
Route FindGet(std::string_view method, const Target& target) {
  for (const auto& [name, operation] : AllJsonOperations()) {
    if (operation.form.get.empty()) continue;
    auto request = Match(operation.form.get, target.path);
    if (!request) continue;
    if (method != kGet) return WrongMethod(kGet);
    if (auto status = AddQuery(operation.form, target, *request); !status.ok()) return ErrorRoute(status);
    Route route;
    route.kind = Route::Kind::kOperation;
    route.operation = &operation;
    route.request = *std::move(request);
    return route;
  }
  return ErrorRoute(
      absl::NotFoundError("path: there is nothing here; GET /v1/openapi.json describes what there is"));
}

/// Returns the route of /v1/changes/{dataset}.
Route FindChanges(std::string_view method, const Target& target) {
  if (method != kGet) return WrongMethod(kGet);
  std::string from(kChangesFromBegin);
  for (const auto& [name, value] : target.query) {
    if (name != "from")
      return ErrorRoute(absl::InvalidArgumentError("query: may have the parameter from only"));
    from = value;
  }
  Route route;
  route.kind = Route::Kind::kChanges;
  route.request = Json{{"dataset", target.path[2]}, {"from", std::move(from)}};
  return route;
}

/// Returns the route of a path of Prometheus' API.
Route FindPrometheus(std::string_view method, const Target& target) {
  if (method != kGet && method != kPost) return WrongMethod("GET, POST");
  Parameters parameters = target.query;
  std::string name;
  for (size_t i = 2; i < target.path.size(); ++i) name += (i == 2 ? "" : "/") + target.path[i];
  // Any label, which is a part of the path.
  if (target.path.size() == 5 && target.path[2] == "label" && target.path[4] == "values") {
    if (method != kGet) return WrongMethod(kGet);
    parameters.emplace_back("label", target.path[3]);
    name = kLabelValues;
  }
  const auto found = PrometheusOperations().find(name);
  if (found == PrometheusOperations().end()) {
    return ErrorRoute(
        absl::NotFoundError("path: of Prometheus' API there are query, query_range, series, labels, "
                            "label/NAME/values, metadata and "
                            "status/buildinfo"));
  }
  Route route;
  route.kind = Route::Kind::kOperation;
  route.operation = &found->second;
  if (method == kPost) {
    route.parameters = std::move(parameters);
    return route;
  }
  auto request = found->second.read(parameters);
  // An error has the form of the operation, too.
  route.error = request.status();
  route.request = request.ok() ? *std::move(request) : Json::object();
  return route;
}

/// Returns the route of a file of the console, the page itself at "/", if this is one.
std::optional<Route> FindConsole(std::string_view method, const std::vector<std::string>& path) {
  std::string name;
  if (path.size() == 1 && path[0].empty()) {
    name = "index.html";
  } else if (path[0] == "console") {
    for (size_t i = 1; i < path.size(); ++i) name += (i == 1 ? "" : "/") + path[i];
  }
  // The page itself is served only at "/", because the addresses in it are relative to that.
  const ConsoleFile* const file =
      path[0] == "console" && name == "index.html" ? nullptr : FindConsoleFile(name);
  if (file == nullptr) return std::nullopt;
  if (method != kGet && method != kHeadMethod) return WrongMethod(kGet);
  Route route;
  route.kind = Route::Kind::kConsole;
  route.file = file;
  return route;
}

}  // namespace

Route FindRoute(std::string_view method, std::string_view target_text) {
  const auto target = ParseTarget(target_text);
  if (!target.ok()) return ErrorRoute(target.status());
  const std::vector<std::string>& path = target->path;
  if (path.size() == 1 && path[0] == "healthz") return PlainRoute(Route::Kind::kHealthz, kGet, method);
  if (path.size() == 1 && path[0] == "readyz") return PlainRoute(Route::Kind::kReadyz, kGet, method);
  if (path.size() == 3 && path[0] == "v1" && path[1] == "changes") return FindChanges(method, *target);
  if (path.size() >= 3 && path[0] == "api" && path[1] == "v1") return FindPrometheus(method, *target);
  if (auto console = FindConsole(method, path)) return *std::move(console);
  if (path.size() != 2 || path[0] != "v1") return FindGet(method, *target);
  if (path[1] == "exec") return PlainRoute(Route::Kind::kExec, kPost, method);
  if (path[1] == "openapi.json") return PlainRoute(Route::Kind::kOpenApi, kGet, method);
  const auto found = AllJsonOperations().find(path[1]);
  if (found == AllJsonOperations().end()) {
    return method == kPost ? ErrorRoute(NoSuchOperationError(path[1])) : FindGet(method, *target);
  }
  if (method != kPost) return WrongMethod(kPost);
  // Its fields are in the body; one in the query would be forgotten.
  if (!target->query.empty())
    return ErrorRoute(absl::InvalidArgumentError("query: the fields of a POST must be in its body, as JSON"));
  Route route;
  route.kind = Route::Kind::kOperation;
  route.operation = &found->second;
  return route;
}

}  // namespace kvstore::server
