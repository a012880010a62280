#pragma once

#include <rocksdb/db.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/write_log.h"

namespace kvstore::rocks {

/// Reads writes from RocksDB's log, of which it keeps files for a while after they are not needed any more
/// (EngineOptions::keep_logs_s). Contract as of WriteLog::Read.
absl::StatusOr<std::vector<LoggedWrite>> ReadWrites(rocksdb::DB& db, uint64_t after, size_t max_bytes);

/// Opens the database of a store's folder to carry out writes again. DATA_LOSS if it does not open.
absl::StatusOr<std::unique_ptr<WriteReplay>> OpenReplay(const std::filesystem::path& folder);

}  // namespace kvstore::rocks
