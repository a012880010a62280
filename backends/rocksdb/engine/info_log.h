#pragma once

#include <rocksdb/env.h>

#include <filesystem>
#include <memory>

namespace kvstore::rocks {

/// RocksDB's log of what it does, in `file`, which is rolled over at 16 MiB; ten are kept.
///
/// In the place of RocksDB's own: after a write to that one has failed, as on a full disk, the next one stops
/// the process (an assert in Debian's build). This one loses the line and goes on.
std::shared_ptr<rocksdb::Logger> OpenInfoLog(const std::filesystem::path& file);

}  // namespace kvstore::rocks
