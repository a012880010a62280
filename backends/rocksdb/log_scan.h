#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/status/statusor.h"

namespace kvstore::rocks {

/// What of a log of RocksDB can be read.
struct LogScan {
  uint64_t size = 0;  ///< Bytes.
  uint64_t good = 0;  ///< Up to the end of the last whole record before anything that is none.
  /// Behind those is more than a crash leaves: not only a record that the end of the file cuts off, or zeros.
  bool damaged = false;
  uint64_t changes = 0;         ///< Keys put and deleted in the good part.
  uint64_t changes_behind = 0;  ///< In whole records behind it, as far as they can be found again.
};

/// Reads a log from its beginning to its end, into memory. NOT_FOUND if there is none, else UNAVAILABLE.
///
/// The format is that of db/log_format.h of RocksDB, which has not changed since its first version: blocks of
/// 32 KiB, in them fragments of records of le32(masked CRC-32C) le16(size) type(1) bytes, none across two
/// blocks. A record is a batch of writes: le64(sequence) le32(changes) and these.
absl::StatusOr<LogScan> ScanLog(const std::filesystem::path& log);

}  // namespace kvstore::rocks
