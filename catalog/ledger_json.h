#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kvstore_api/json.h"
#include "kvstore_api/ledger.h"

/// The stored form of operations. Pinned by a golden test.
namespace kvstore {

/// {"what": "open shards db 4-7", "who": "...", "since_ms": 1, "lasting": false, "claims": [...], ...},
/// without the ID, and back. Fields that are not known are passed over.
Json OperationToJson(const Operation& operation);
absl::StatusOr<Operation> DecodeOperation(std::string_view text);

}  // namespace kvstore
