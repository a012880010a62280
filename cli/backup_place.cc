#include "cli/backup_place.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "assembly/backend_config.h"
#include "assembly/backend_type.h"
#include "assembly/built_in_types.h"
#include "blobstore/blobs_below.h"
#include "cli/shared_store.h"

namespace kvstore::cli {
namespace {

absl::Status NoEngineError() {
  return absl::InvalidArgumentError(
      "config: backends: none is of type rocksdb, and only that engine's data can be backed up so; hosts of "
      "a fleet are with --host, a dataset with --dataset");
}

}  // namespace

absl::StatusOr<backup::CheckpointMaker> CheckpointsOf(Router& router, const OpenOptions& options) {
  const auto embedded = FindBackendOfType(options, kRocksDb);
  if (!embedded) return NoEngineError();
  const auto backend = router.keeper().FindBackend(embedded->name);
  if (!backend.ok()) return backend.status();
  if (options.coordination) return SharedCheckpoints(**backend, embedded->name, *options.coordination);
  return backup::CheckpointMaker([engine = *backend] { return engine->MakeCheckpoint(); });
}

absl::StatusOr<std::unique_ptr<WriteLog>> LogOf(Router& router, const OpenOptions& options) {
  const auto embedded = FindBackendOfType(options, kRocksDb);
  if (!embedded) return NoEngineError();
  const auto backend = router.keeper().FindBackend(embedded->name);
  if (!backend.ok()) return backend.status();
  auto log = BuiltInBackendTypes().Find(kRocksDb)->open_log(**backend);
  if (!options.coordination) return log;
  return SharedLog(std::move(log), embedded->name, *options.coordination);
}

fleet_backup::BlobOpener BackupOpener(const Globals& globals, const std::string& url,
                                      const std::string& option, MissingFolder missing) {
  std::optional<BackupConfig> backup;
  if (!globals.config.empty()) backup = OrFail(ReadConfig(globals.config)).backup;
  if (url.empty() && !backup) {
    WrongUsage(
        fmt::format("{}: say where the backups are, file:DIR or s3://BUCKET/PREFIX; or name a configuration "
                    "that has backup.to",
                    option));
  }
  return [to = url.empty() ? backup->to : url, s3 = backup ? backup->s3 : S3Options(), missing] {
    return OpenBlobStore(to, s3, missing);
  };
}

std::unique_ptr<BlobStore> OpenBackups(const Globals& globals, const std::string& url,
                                       const std::string& option, const std::string& dataset,
                                       MissingFolder missing) {
  return OrFail(OpenOfDataset(BackupOpener(globals, url, option, missing)(), dataset));
}

absl::StatusOr<std::unique_ptr<BlobStore>> OpenOfDataset(absl::StatusOr<std::unique_ptr<BlobStore>> blobs,
                                                         const std::string& dataset) {
  if (!blobs.ok() || dataset.empty()) return blobs;
  if (auto status = Validate(DatasetSpec{.name = dataset}); !status.ok()) return status;
  return BlobsBelow(*std::move(blobs), "datasets/" + dataset + "/");
}

std::string SizeText(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Progress ShowBytes(ProgressBar& bar) {
  return [&bar](uint64_t done, uint64_t total) {
    bar.Show(done, total, fmt::format("{} of {}", SizeText(done), SizeText(total)));
    return true;
  };
}

}  // namespace kvstore::cli
