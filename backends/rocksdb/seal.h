#pragma once

#include <filesystem>

#include "absl/status/status.h"

/// The seal on a database that was closed in order. RocksDB takes a manifest that is cut short for one that a
/// crash left behind, opens what was there earlier, and removes the files that the lost end named. So the
/// close writes down size and checksum of the manifest, and the next open compares before RocksDB sees it:
///
///   SEAL  "MANIFEST-000005 size 1234 crc32 89abcdef"
///
/// Every open starts a manifest of another name, so that an old seal says nothing about it: after a crash
/// there is none.
namespace kvstore::rocks {

/// Seals the manifest of the closed database in `database`, durably.
absl::Status WriteSeal(const std::filesystem::path& seal, const std::filesystem::path& database);

/// DATA_LOSS if the manifest is not what the seal says; OK if it is, or if there is no seal for it.
absl::Status CheckSeal(const std::filesystem::path& seal, const std::filesystem::path& database);

}  // namespace kvstore::rocks
