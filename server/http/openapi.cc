#include "server/http/openapi.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "json_api/schemas.h"
#include "server/http/http_answer.h"
#include "server/http/json_operations.h"

namespace kvstore::server {
namespace {

constexpr std::array kErrorStatuses = {400, 401, 403, 404, 409, 412, 413, 429, 500, 501, 503, 504};

Json Reference(std::string_view kind, std::string_view name) {
  return {{"$ref", fmt::format("#/components/{}/{}", kind, name)}};
}

Json Text(std::string_view text) { return Json(std::string(text)); }

Json ObjectOf(const std::vector<JsonFormField>& fields, Json properties, Json required, bool takes_more) {
  for (const JsonFormField& field : fields) {
    properties[std::string(field.name)] = Reference("schemas", field.type);
    if (field.required) required.push_back(Text(field.name));
  }
  Json schema = {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", takes_more}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

Json JsonContent(Json schema) { return {{"application/json", {{"schema", std::move(schema)}}}}; }

Json ResponsesOf(const JsonOperation& operation) {
  Json responses = {{"200",
                     {{"description", "It was done"},
                      {"content", JsonContent(ObjectOf(operation.form.answer, {{"ok", {{"const", true}}}},
                                                       Json::array({"ok"}),
                                                       /*takes_more=*/false))}}}};
  for (const int status : kErrorStatuses) responses[std::to_string(status)] = Reference("responses", "Error");
  return responses;
}

/// Returns the parameters that all requests may have.
Json CommonParameters(const JsonOperation& operation) {
  Json parameters = Json::array({Reference("parameters", "TimeoutMs")});
  if (Traits(operation.operation).right < Right::kWrite) return parameters;
  parameters.push_back(Reference("parameters", "RequestId"));
  parameters.push_back(Reference("parameters", "FirstInstance"));
  return parameters;
}

Json OperationOf(const JsonOperation& operation, std::string id) {
  Json described = {{"operationId", std::move(id)},
                    {"summary", Text(operation.form.summary)},
                    {"parameters", CommonParameters(operation)},
                    {"responses", ResponsesOf(operation)}};
  if (operation.operation == Operation::kGetServer) described["security"] = Json::array({Json::object()});
  return described;
}

Json PostOf(const JsonOperation& operation) {
  Json post = OperationOf(operation, operation.name);
  Json body =
      ObjectOf(operation.form.request, Json::object(), Json::array(), operation.form.takes_more_fields);
  const bool required = body.contains("required");
  post["requestBody"] = {{"required", required}, {"content", JsonContent(std::move(body))}};
  return post;
}

Json GetOf(const JsonOperation& operation) {
  Json get = OperationOf(operation, operation.name + "_get");
  for (const JsonFormField& field : operation.form.request) {
    const bool in_path = operation.form.get.find(fmt::format("{{{}}}", field.name)) != std::string_view::npos;
    // Bytes that are no text are percent-encoded, so a string is enough here.
    Json schema = field.type == "BytesList" || field.type == "Flag" ? Reference("schemas", field.type)
                                                                    : Json{{"type", "string"}};
    get["parameters"].push_back({{"name", Text(field.name)},
                                 {"in", in_path ? "path" : "query"},
                                 {"required", in_path || field.required},
                                 {"schema", std::move(schema)}});
  }
  return get;
}

Json ExecOf() {
  const Json lines = {{"application/x-ndjson", {{"schema", {{"type", "string"}}}}}};
  Json responses = {
      {"200",
       {{"description", "A line of JSON for each request, in their order. Requests that fail are lines, too"},
        {"content", lines}}}};
  for (const int status : {400, 401, 503})
    responses[std::to_string(status)] = Reference("responses", "Error");
  return {{"operationId", "exec"},
          {"summary",
           "Carries out requests, each a line of JSON with its \"op\" and perhaps an \"id\", which the "
           "answer repeats. "
           "Answers come while requests are sent"},
          {"parameters", Json::array({Reference("parameters", "TimeoutMs")})},
          {"requestBody", {{"required", true}, {"content", lines}}},
          {"responses", std::move(responses)}};
}

Json FollowOf() {
  Json responses = {{"200",
                     {{"description",
                       "Server-sent events, until the client leaves: the `data` of each is a change, or says "
                       "until when all "
                       "were told; its `id` is the token to go on after it. An `error` is the last one"},
                      {"content", {{std::string(kEventsType), {{"schema", {{"type", "string"}}}}}}}}}};
  for (const int status : {400, 401, 403, 404, 412, 429, 503})
    responses[std::to_string(status)] = Reference("responses", "Error");
  const auto text = [](const char* name, const char* in, bool required, const char* description) {
    return Json{{"name", name},
                {"in", in},
                {"required", required},
                {"description", description},
                {"schema", {{"type", "string"}}}};
  };
  return {{"operationId", "watch_changes"},
          {"summary", "Follows a dataset that keeps its changes: tells them as they come"},
          {"parameters",
           Json::array({text("dataset", "path", true, "Its name"),
                        text("from", "query", false, "A token; or `begin`, the default, or `now`"),
                        text("Last-Event-ID", "header", false,
                             "A token, in place of `from`: browsers send it when they connect again")})},
          {"responses", std::move(responses)}};
}

Json ParameterOf(std::string_view name, std::string_view description, Json schema) {
  return {{"name", Text(name)},
          {"in", "header"},
          {"required", false},
          {"description", Text(description)},
          {"schema", std::move(schema)}};
}

Json ComponentsOf() {
  const Json hex = {{"type", "string"}, {"pattern", "^[0-9A-Fa-f-]{32,40}$"}};
  return {{"schemas", json_api::Schemas()},
          {"responses",
           {{"Error",
             {{"description",
               "It failed. Where `Retry-After` is there, nothing was done and the request may be sent again"},
              {"content", JsonContent(Reference("schemas", "Error"))}}}}},
          {"parameters",
           {{"TimeoutMs", ParameterOf("Kv-Timeout-Ms",
                                      "How long the client waits; of a stream of requests, for each of them",
                                      {{"type", "integer"}, {"minimum", 1}, {"maximum", 86'400'000}})},
            {"RequestId", ParameterOf("Kv-Request-Id",
                                      "16 random bytes, such as a UUID: the write happens once, however "
                                      "often it is sent with the same ID",
                                      hex)},
            {"FirstInstance",
             ParameterOf("Kv-First-Instance",
                         "In a repetition: `Kv-Instance` of the server that the request was sent to first. "
                         "Another server, "
                         "or the same after a restart, then says that the write is in doubt and does nothing",
                         hex)}}},
          {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}};
}

}  // namespace

Json OpenApiDocument() {
  Json paths = Json::object();
  for (const auto& [name, operation] : AllJsonOperations()) {
    paths["/v1/" + name]["post"] = PostOf(operation);
    if (!operation.form.get.empty()) paths[std::string(operation.form.get)]["get"] = GetOf(operation);
  }
  paths["/v1/exec"]["post"] = ExecOf();
  paths["/v1/changes/{dataset}"]["get"] = FollowOf();
  paths["/v1/openapi.json"]["get"] = {
      {"operationId", "openapi"},
      {"summary", "Returns this document"},
      {"responses",
       {{"200", {{"description", "This document"}, {"content", JsonContent({{"type", "object"}})}}},
        {"401", Reference("responses", "Error")}}}};
  // Where there is no list of tokens, none is needed.
  return {{"openapi", "3.1.0"},
          {"info",
           {{"title", "KVStore"},
            {"version", KV_VERSION},
            {"license", {{"name", "Apache 2.0"}, {"identifier", "Apache-2.0"}}}}},
          {"paths", std::move(paths)},
          {"components", ComponentsOf()},
          {"security", Json::array({{{"token", Json::array()}}, Json::object()})}};
}

}  // namespace kvstore::server
