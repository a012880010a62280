#include "cli/backup_place.h"

#include <fmt/format.h>

#include <optional>

#include "assembly/backend_config.h"
#include "blobstore/open_blob_store.h"

namespace kvstore::cli {

absl::StatusOr<backup::CheckpointMaker> CheckpointsOf(Router& router, const OpenOptions& options) {
  if (options.coordination) {
    return absl::FailedPreconditionError(
        "config: zookeeper: the catalog of this store is in ZooKeeper, so that a backup of its folder could "
        "not be restored; docs/backup.md says what to do instead");
  }
  const auto embedded = FindBackendOfType(options, kRocksDb);
  if (!embedded) {
    return absl::InvalidArgumentError(
        "config: backends: none is of type rocksdb, and only that engine's data can be backed up so");
  }
  const auto backend = router.keeper().FindBackend(embedded->name);
  if (!backend.ok()) return backend.status();
  return backup::CheckpointMaker([engine = *backend] { return engine->MakeCheckpoint(); });
}

std::unique_ptr<BlobStore> OpenBackups(const Globals& globals, const std::string& url,
                                       const std::string& option) {
  std::optional<BackupConfig> backup;
  if (!globals.config.empty()) backup = OrFail(ReadConfig(globals.config)).backup;
  if (url.empty() && !backup) {
    throw Failure{absl::InvalidArgumentError(fmt::format(
        "{}: say where the backups are, file:DIR or s3://BUCKET/PREFIX; or name a configuration that has "
        "backup.to",
        option))};
  }
  return OrFail(OpenBlobStore(url.empty() ? backup->to : url, backup ? backup->s3 : S3Options()));
}

}  // namespace kvstore::cli
