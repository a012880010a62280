#include "cli/restored_store.h"

#include <fmt/format.h>

#include <utility>

#include "assembly/backend_config.h"
#include "assembly/backend_type.h"
#include "assembly/built_in_types.h"
#include "assembly/open_router.h"
#include "backup/restore.h"
#include "cli/backup_place.h"
#include "cli/escape.h"
#include "cli/progress.h"
#include "cli/table.h"

namespace kvstore::cli {
namespace {

/// How a restored store is opened: with its embedded engine alone, because a backup has no other data.
OpenOptions OptionsOfRestored(const Globals& globals, const std::filesystem::path& folder) {
  OpenOptions options;
  if (!globals.config.empty()) {
    const OpenOptions configured = OrFail(ReadConfig(globals.config)).store;
    if (const auto embedded = FindBackendOfType(configured, kRocksDb)) {
      options.backends = {*embedded->config};
      options.backends[0].name = embedded->name;
      options.default_backend = embedded->name;
    }
  }
  options.data = folder;
  options.create_if_missing = false;
  return options;
}

}  // namespace

backup::Manifest ChooseBackup(BackupSource& source, BlobStore& blobs, uint64_t at_ms) {
  if (at_ms != 0 && source.id.empty()) {
    backup::BackupBefore found = OrFail(backup::FindBackupBefore(blobs, at_ms));
    if (!found.problem.empty()) {
      PrintErr("a newer backup cannot be read, so an older one is restored: {}\n", found.problem);
    }
    return std::move(found.manifest);
  }
  backup::Manifest manifest = source.Read(blobs);
  if (at_ms != 0 && manifest.finished_ms > at_ms) {
    throw Failure{absl::InvalidArgumentError(
        fmt::format("at: the backup {} was finished later, at {}; name an older one, or none", manifest.id,
                    UtcText(manifest.finished_ms)))};
  }
  return manifest;
}

backup::Replayed RestoreFolder(const backup::Manifest& manifest, BlobStore& blobs, uint64_t at_ms,
                               const std::filesystem::path& to) {
  backup::Replayed replayed{.as_of_ms = manifest.began_ms};
  backup::BeforeOpen replay;
  if (at_ms != 0) {
    replay = [&](const std::filesystem::path& folder) {
      const auto done = backup::ReplayLog(manifest, blobs, at_ms, folder,
                                          BuiltInBackendTypes().Find(kRocksDb)->open_replay);
      if (done.ok()) replayed = *done;
      return done.status();
    };
  }
  ProgressBar bar("restore", "bytes");
  CheckBackup(backup::RestoreBackup(manifest, blobs, to, ShowBytes(bar), replay), "restore", manifest.id);
  return replayed;
}

RestoredStore::RestoredStore(const Globals& globals, BackupSource& source, uint64_t at_ms)
    : folder_(OrFail(TemporaryFolder::Make("kv-restored-"))) {
  const auto blobs = source.Open(globals);
  const backup::Manifest manifest = ChooseBackup(source, *blobs, at_ms);
  as_of_ms_ = RestoreFolder(manifest, *blobs, at_ms, folder_->path()).as_of_ms;
  router_ = OrFail(OpenRouter(OptionsOfRestored(globals, folder_->path())));
}

RestoredStore::~RestoredStore() = default;

}  // namespace kvstore::cli
