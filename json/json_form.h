#pragma once

#include <string_view>
#include <vector>

namespace kvstore {

/// A field of a request or of an answer in JSON, as documents for machines describe it.
struct JsonFormField {
  std::string_view name;
  std::string_view type;  ///< The name of one of the schemas of json_api/schemas.h.
  bool required = true;
};

/// The fields of the request and of the answer of an operation in JSON, beside the envelope ("op", "id",
/// "ok"). A form is written next to its operation, and a test compares it with what the operation reads.
struct JsonForm {
  std::string_view summary;
  /// The path by which a GET asks for the same, with the fields of the request that it has:
  /// "/v1/datasets/{dataset}"; the other fields are parameters of the query. Empty: there is none.
  std::string_view get = {};
  std::vector<JsonFormField> request = {};
  bool takes_more_fields = false;  ///< The request may have fields that are not listed here.
  std::vector<JsonFormField> answer = {};
};

inline JsonFormField RequiredField(std::string_view name, std::string_view type) {
  return {name, type, true};
}
inline JsonFormField OptionalField(std::string_view name, std::string_view type) {
  return {name, type, false};
}

}  // namespace kvstore
