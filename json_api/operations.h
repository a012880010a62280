#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/answers.h"
#include "kvstore_api/json_fields.h"
#include "kvstore_api/kvstore.h"

/// The operations of exec_protocol.h, by shape, and what they share.
namespace kvstore::cli {

/// The fields of an answer beside "ok".
using Answer = absl::StatusOr<Json>;
using Operation = Answer (*)(JsonFields& fields, KVStore& store);
using Operations = std::map<std::string, Operation, std::less<>>;

const Operations& RowOperations();
const Operations& ObjectOperations();
const Operations& MappingOperations();

/// No fields, or the error.
Answer Done(const absl::Status& status);
/// `answer` with "ok": true.
Json WithOk(Json answer);
/// The marker to go on from: a string, or null as the last page has it.
std::string ReadMarker(JsonFields& fields);
/// A count of at least 1.
uint32_t ReadCount(JsonFields& fields, std::string_view name, uint32_t otherwise);

/// The answers of a batch, each with its own ok.
template <typename Results, typename ToJson>
Json ResultsToJson(const Results& results, ToJson to_json) {
  Json list = Json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    const Answer answer = to_json(i);
    list.push_back(answer.ok() ? WithOk(*answer) : ErrorToJson(answer.status()));
  }
  return {{"results", std::move(list)}};
}

}  // namespace kvstore::cli
