#pragma once

#include <rocksdb/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace kvstore::rocks {

/// A RocksDB status in the project's codes; the only place where one becomes the other.
///
/// Corruption is DATA_LOSS, a full disk RESOURCE_EXHAUSTED, anything else that the engine reports
/// UNAVAILABLE. `action` begins the message: "cannot ACTION: what RocksDB says".
absl::Status ToStatus(const rocksdb::Status& status, std::string_view action);

}  // namespace kvstore::rocks
