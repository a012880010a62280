#include "json_api/execute.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "json/json_text.h"
#include "json_api/answers.h"
#include "json_api/operations.h"
#include "reports/plain_write.h"

namespace kvstore::json_api {
namespace {

const std::map<std::string, Operation>& Operations() {
  static const std::map<std::string, Operation> operations = {
#define KV_JSON(name, op) {#op, &name},
#include "backend_api/operations.def"
  };
  return operations;
}

/// Returns the operations, also those on reports, that somebody may have meant by `name`.
std::vector<std::string> Meant(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [op, operation] : Operations()) names.push_back(op);
  for (const auto& [op, operation] : reports::JsonOperations()) names.push_back(op);
  return Nearest(name, names);
}

Answer Dispatch(const Json& request, KVStore& store, const reports::ReportsOf& reports_of) {
  JsonFields fields(request, "");
  fields.Find("id");
  const std::string name = fields.String("op");
  return ExecuteOperation(name, fields, store, reports_of);
}

/// The line of an answer.
std::string Envelope(const Answer& answer, const std::optional<Json>& id) {
  Json envelope = answer.ok() ? WithOk(*answer) : ErrorToJson(answer.status());
  if (id) envelope["id"] = *id;
  return TextOf(envelope);
}

}  // namespace

Answer ExecuteOperation(const std::string& op, JsonFields& fields, KVStore& store,
                        const reports::ReportsOf& reports_of) {
  const auto on_store = Operations().find(op);
  if (on_store != Operations().end()) return on_store->second(fields, store);
  const auto on_reports = reports::JsonOperations().find(op);
  if (on_reports != reports::JsonOperations().end()) return on_reports->second(fields, reports_of);
  // If the request is not an object, or has no op, that is the first mistake. The fields of an unknown op are
  // not checked.
  fields.Fail("op", fmt::format("there is no operation '{}'{}", op, DidYouMean(Meant(op))));
  return fields.FirstMistake();
}

Answer Done(const absl::Status& status) {
  if (!status.ok()) return status;
  return Json::object();
}

std::string ReadMarker(JsonFields& fields) {
  const Json* marker = fields.Find("marker");
  return marker == nullptr || marker->is_null() ? "" : fields.OptionalBytes("marker").value_or("");
}

uint32_t ReadCount(JsonFields& fields, std::string_view name, uint32_t otherwise) {
  return static_cast<uint32_t>(
      fields.OptionalUint(name, 1, std::numeric_limits<uint32_t>::max()).value_or(otherwise));
}

std::string Execute(KVStore& store, const reports::ReportsOf& reports_of, std::string_view line) {
  // Points are read without a tree of the request, which would take several times as long as writing them.
  if (const auto write = reports::PlainWrite::Read(line)) {
    if (const auto answer = write->CarryOut(reports_of)) return Envelope(*answer, write->id());
  }
  const auto request = ParseJson(line, kMaxEnvelopeDepth);
  if (!request.ok()) return TextOf(ErrorToJson(request.status()));
  std::optional<Json> id;
  if (request->is_object() && request->contains("id")) id.emplace((*request)["id"]);
  return Envelope(Dispatch(*request, store, reports_of), id);
}

std::string Execute(KVStore& store, std::string_view line) {
  const auto local = [&store](const std::string& dataset) { return reports::LocalReports(store, dataset); };
  return Execute(store, local, line);
}

}  // namespace kvstore::json_api
