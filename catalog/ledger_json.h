#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "catalog/ledger.h"
#include "json/json.h"

/// The stored form of operations. A golden test pins it.
namespace kvstore {

/// Encodes an operation, without its ID, and decodes it:
/// {"what": "open shards db 4-7", "who": "...", "since_ms": 1, "lasting": false, "claims": [...], ...}
/// Unknown fields are ignored; unknown kinds of claims are FAILED_PRECONDITION.
Json OperationToJson(const Operation& operation);
absl::StatusOr<Operation> DecodeOperation(std::string_view text);

}  // namespace kvstore
