#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kvstore::testing {

/// Returns why a value is not one of the schema; empty if it is. A keyword that this does not know is a
/// mistake, so that nothing is taken for checked that is not.
///
/// document  Of OpenAPI, in which "$ref" finds other schemas.
std::string Mismatch(const nlohmann::json& document, const nlohmann::json& schema,
                     const nlohmann::json& value, const std::string& path = "");

}  // namespace kvstore::testing
