#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "json/json_fields.h"
#include "json/json_form.h"
#include "json_api/answers.h"
#include "kvstore_api/kvstore.h"

/// The operations of execute.h, and what they share.
namespace kvstore::json_api {

/// The fields of an answer except "ok", or an error.
using Answer = absl::StatusOr<Json>;
/// Reads its request from `fields`, and carries it out.
using Operation = Answer (*)(JsonFields& fields, KVStore& store);

// The operations of the table with their forms, in row_operations.cc, object_operations.cc and
// dataset_operations.cc.
#define KV_JSON(name, op)                          \
  Answer name(JsonFields& fields, KVStore& store); \
  JsonForm name##Form();
#include "backend_api/operations.def"

/// Returns an answer without fields if `status` is OK, else the error.
Answer Done(const absl::Status& status);
/// Reads the marker to go on from: a string, or null as the last page has it, which is the same as none.
std::string ReadMarker(JsonFields& fields);
/// Reads a count of at least 1; `otherwise` if it is not given.
uint32_t ReadCount(JsonFields& fields, std::string_view name, uint32_t otherwise);

/// Returns the answers of a batch, each with its own "ok". `to_json` makes the answer of the i-th entry.
template <typename Results, typename ToJson>
Json ResultsToJson(const Results& results, ToJson to_json) {
  Json list = Json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    const Answer answer = to_json(i);
    list.push_back(answer.ok() ? WithOk(*answer) : ErrorToJson(answer.status()));
  }
  return {{"results", std::move(list)}};
}

}  // namespace kvstore::json_api
