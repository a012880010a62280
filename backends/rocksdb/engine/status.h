#pragma once

#include <rocksdb/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace kvstore::rocks {

/// Converts a RocksDB status to the project's codes; this is the only place where that is done.
///
/// Corruption is DATA_LOSS, with advice (base/advice.h), a full disk RESOURCE_EXHAUSTED, a dropped column
/// family NOT_FOUND, any other error UNAVAILABLE. `action` begins the message: "cannot ACTION: the text of
/// RocksDB".
absl::Status ToStatus(const rocksdb::Status& status, std::string_view action);

}  // namespace kvstore::rocks
