#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/status/statusor.h"

namespace kvstore::rocks {

/// How much of a write-ahead log of RocksDB can be read.
struct LogScan {
  uint64_t size = 0;  ///< Bytes of the file.
  uint64_t good = 0;  ///< Bytes up to the end of the last whole record before the first bad one.
  /// More follows the good part than a crash leaves, which is a record that the end of the file cuts off, or
  /// zeros.
  bool damaged = false;
  uint64_t changes = 0;         ///< Puts and deletes in the good part.
  uint64_t changes_behind = 0;  ///< In whole records after it, as far as a scan finds them.
};

/// Reads a whole log into memory and scans it. NOT_FOUND if there is none, UNAVAILABLE if it cannot be read.
///
/// The format is that of db/log_format.h of RocksDB, which has not changed since its first version: blocks of
/// 32 KiB hold fragments of records, each le32(masked CRC-32C) le16(size) type(1) bytes, and none crosses a
/// block. A record is a batch of writes: le64(sequence) le32(changes), then the changes.
absl::StatusOr<LogScan> ScanLog(const std::filesystem::path& log);

}  // namespace kvstore::rocks
