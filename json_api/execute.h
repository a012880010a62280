#pragma once

#include <string>
#include <string_view>

#include "kvstore_api/kvstore.h"

/// The store by JSON lines. docs/json-lines.md is the reference.
namespace kvstore::json_api {

/// Carries out one request, given as a line of JSON, and returns the answer as a line of JSON without a line
/// break. Never throws and never ends the process: every error is in the answer. Thread-safe.
std::string Execute(KVStore& store, std::string_view line);

}  // namespace kvstore::json_api
