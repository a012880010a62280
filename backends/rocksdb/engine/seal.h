#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"

/// The seal on a database that was closed in order. RocksDB takes a manifest or a log that is cut short for
/// one that a crash left behind, and a log that is gone for one that was not needed: it opens what was there
/// earlier, and removes the files that the lost end named. So the close writes down what it leaves, and the
/// next open compares before RocksDB sees it, in two files:
///
///   SEAL       "MANIFEST-000005 size 1234 crc32 89abcdef"
///   SEAL.logs  the same line, then for each log that is not empty, of which a close writes nothing to
///   tables,
///              "000012.log size 5678 tail crc32 01234567": of its last 64 KiB, because what is damaged
///              before them is found by RocksDB
///
/// Every open starts a manifest of another name, so that an old seal says nothing about it: after a crash
/// there is none. Each of the two holds by itself, so that a crash between them, or a version that writes the
/// first only, leaves no wrong one.
namespace kvstore::rocks {

/// The manifest in force.
std::filesystem::path CurrentManifest(const std::filesystem::path& database);

/// A log that the seal names.
struct SealedLog {
  std::string name;    ///< "000012.log"
  uint64_t size = 0;   ///< As it was closed; bytes.
  bool intact = true;  ///< It still is as it was closed.
};

/// Those of a seal that is for this manifest; none if there is no such seal.
std::vector<SealedLog> SealedLogs(const std::filesystem::path& seal, const std::filesystem::path& database);
/// For who has changed the logs. OK if there is none.
absl::Status RemoveSealOfLogs(const std::filesystem::path& seal);

/// Seals the manifest and the logs of the closed database in `database`, durably.
absl::Status WriteSeal(const std::filesystem::path& seal, const std::filesystem::path& database);

/// DATA_LOSS, naming the file, if the manifest or a log is not what the seal says; OK if all are, or if there
/// is no seal for this manifest. Logs that the seal does not name are not looked at.
absl::Status CheckSeal(const std::filesystem::path& seal, const std::filesystem::path& database);

}  // namespace kvstore::rocks
