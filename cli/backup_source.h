#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "cli/command.h"

/// The options that the commands which read backups share.
namespace kvstore::cli {

/// The help of the options that say where the backups are.
inline constexpr char kWhereHelp[] =
    "The folder or bucket with the backups: file:DIR or s3://BUCKET/PREFIX; default: backup.to of the "
    "configuration";

/// The options that say which backups are meant: those of whole stores, of one dataset, or of a pair of MySQL
/// servers.
struct BackupSet {
  std::string from;
  std::string dataset;
  std::string host;  ///< A host of the pair, as shard maps name it, now or when the backup was made.

  void AddTo(CLI::App& command);
  /// Opens the store of those backups. Throws Failure.
  std::unique_ptr<BlobStore> Open(const Globals& globals) const;
};

/// The same, and the option that says which one of them.
struct BackupSource : BackupSet {
  std::string id;

  void AddTo(CLI::App& command);
  /// Reads the manifest of the backup that was named, or of the newest one, whose ID it then has. Throws
  /// Failure.
  backup::Manifest Read(BlobStore& blobs);
};

/// Returns a backup in the form of --json.
Json ManifestToJson(const backup::Manifest& manifest);

/// Throws Failure that names the backup, unless `status` is OK.
///
/// action  "restore"
void CheckBackup(const absl::Status& status, std::string_view action, const std::string& id);

}  // namespace kvstore::cli
