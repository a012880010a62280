#pragma once

#include <rocksdb/env.h>

#include <filesystem>
#include <memory>

namespace kvstore::rocks {

/// Opens RocksDB's diagnostic log in `file`. It is rotated at 16 MiB, and ten files are kept.
///
/// It replaces RocksDB's own logger, which stops the process (an assert in Debian's build) at the first line
/// after a failed write, as on a full disk. This one drops the line and goes on.
std::shared_ptr<rocksdb::Logger> OpenInfoLog(const std::filesystem::path& file);

}  // namespace kvstore::rocks
