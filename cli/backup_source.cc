#include "cli/backup_source.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "backup/list.h"
#include "cli/backup_place.h"

namespace kvstore::cli {

using backup::Manifest;

void BackupSource::AddTo(CLI::App& command) {
  command.add_option("--from", from, kWhereHelp)->type_name("URL");
  command.add_option("--dataset", dataset, kOfDatasetHelp)->type_name("D");
  command.add_option("--backup", id, "Which one; default: the newest")->type_name("BACKUP");
}

std::unique_ptr<BlobStore> BackupSource::Open(const Globals& globals) const {
  return OpenBackups(globals, from, "--from", dataset);
}

Manifest BackupSource::Read(BlobStore& blobs) {
  if (id.empty()) id = OrFail(backup::NewestBackup(blobs));
  auto manifest = backup::ReadManifest(blobs, id);
  if (absl::IsDataLoss(manifest.status())) CheckBackup(manifest.status(), "read", id);
  return OrFail(std::move(manifest));
}

Json ManifestToJson(const Manifest& manifest) {
  Json json = {{"id", manifest.id},
               {"began_ms", manifest.began_ms},
               {"finished_ms", manifest.finished_ms},
               {"host", manifest.host},
               {"version", manifest.version},
               {"engine", manifest.engine},
               {"files", manifest.files.size()},
               {"bytes", manifest.TotalBytes()},
               {"sent_objects", manifest.sent_objects},
               {"sent_bytes", manifest.sent_bytes}};
  if (manifest.dataset) {
    json["dataset"] = manifest.dataset->spec.name;
    json["shape"] = Name(manifest.dataset->spec.shape);
    json["units"] = manifest.dataset->units;
  }
  return json;
}

void CheckBackup(const absl::Status& status, std::string_view action, const std::string& id) {
  if (status.ok()) return;
  throw Failure{absl::Status(
      status.code(), fmt::format("cannot {} the backup {}: {}", action, id, std::string(status.message())))};
}

}  // namespace kvstore::cli
