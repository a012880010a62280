#pragma once

#include <cstdint>
#include <string>

#include "backup/manifest.h"
#include "backup/verify.h"
#include "blobstore/blob_store.h"
#include "cli/command.h"
#include "kvstore_api/types.h"

/// Backups of pairs of MySQL servers: what kv backup does with them. The functions throw Failure.
namespace kvstore::cli {

/// A backup that was made, and the URL of the store of backups that it is in.
struct HostBackup {
  backup::Manifest manifest;
  std::string url;
};

/// Backs up the pair of a host, on the machine of its slave.
///
/// to    as for OpenBackups.
/// host  as it is written in the shard maps.
HostBackup BackUpHost(const Globals& globals, const std::string& to, const std::string& host,
                      uint64_t bytes_per_s, const Progress& progress);

/// Prints the newest backup of each pair, and how far its binary log was sent.
///
/// from  as for OpenBackups.
void ListPairBackups(const Globals& globals, const std::string& from);

/// Prints which server a backup is of.
void PrintServer(const backup::ServerPart& server);

/// Adds to what was found in a backup what is wrong with the binary log that follows it.
void VerifyLog(BlobStore& blobs, const backup::Manifest& manifest, backup::Verified& verified);

}  // namespace kvstore::cli
