#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"

/// The seal on a database that was closed in order. RocksDB takes a truncated manifest or log for one that a
/// crash left behind, and a missing log for one that was not needed: it then opens an earlier state, and
/// removes the files that the lost end named. So the close records what it leaves, and the next open compares
/// before RocksDB sees the files. There are two files of the seal:
///
///   SEAL       "MANIFEST-000005 size 1234 crc32 89abcdef"
///   SEAL.logs  the same line, then one for each log that is not empty, as a close flushes nothing to tables:
///              "000012.log size 5678 tail crc32 01234567", the checksum of the last 64 KiB, because RocksDB
///              itself finds damage before them
///
/// Every open starts a manifest with another name, so an old seal says nothing about it: after a crash there
/// is no seal. Each of the two files is valid by itself, so that a crash between them, or a version that
/// writes only the first, leaves no wrong seal.
namespace kvstore::rocks {

/// The path of the manifest in force.
std::filesystem::path CurrentManifest(const std::filesystem::path& database);

/// A log that the seal names.
struct SealedLog {
  std::string name;    ///< "000012.log"
  uint64_t size = 0;   ///< Bytes at the close.
  bool intact = true;  ///< The log is still as it was at the close.
};

/// The logs of a seal that is for the manifest in force; none if there is no such seal.
std::vector<SealedLog> SealedLogs(const std::filesystem::path& seal, const std::filesystem::path& database);
/// Removes SEAL.logs, after the logs were changed. OK if there is none.
absl::Status RemoveSealOfLogs(const std::filesystem::path& seal);

/// Seals the manifest and the logs of the closed database in `database`, durably.
absl::Status WriteSeal(const std::filesystem::path& seal, const std::filesystem::path& database);

/// DATA_LOSS, naming the file, if the manifest or a log is not what the seal says; OK if all are, or if there
/// is no seal for this manifest. Logs that the seal does not name are not checked.
absl::Status CheckSeal(const std::filesystem::path& seal, const std::filesystem::path& database);

}  // namespace kvstore::rocks
