#include "cli/backup_source.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "backup/list.h"
#include "cli/backup_place.h"
#include "fleet_backup/pair_backups.h"

namespace kvstore::cli {

using backup::Manifest;

void BackupSet::AddTo(CLI::App& command) {
  command.add_option("--from", from, kWhereHelp)->type_name("URL");
  CLI::Option* of_dataset =
      command
          .add_option("--dataset", dataset, "The backups of this dataset alone, not those of whole stores")
          ->type_name("D");
  command.add_option("--host", host, "The backups of the pair of MySQL servers that has or had this host")
      ->type_name("HOST")
      ->excludes(of_dataset);
}

std::unique_ptr<BlobStore> BackupSet::Open(const Globals& globals) const {
  if (host.empty()) return OpenBackups(globals, from, "--from", dataset, MissingFolder::kRefuse);
  auto newest = OrFail(fleet_backup::NewestOfPairs(
      BackupOpener(globals, from, "--from", MissingFolder::kRefuse), /*at_ms=*/0));
  return OrFail(fleet_backup::FindOfHost(std::move(newest), host)).blobs;
}

void BackupSource::AddTo(CLI::App& command) {
  BackupSet::AddTo(command);
  command.add_option("--backup", id, "Which one; default: the newest")->type_name("BACKUP");
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
  if (manifest.server) {
    json["server"] = manifest.server->host;
    json["master"] = manifest.server->master;
    json["slave"] = manifest.server->slave;
    json["domain"] = manifest.server->domain;
    json["gtid"] = manifest.server->gtid;
    json["server_bytes"] = manifest.server->bytes;
  }
  return json;
}

void CheckBackup(const absl::Status& status, std::string_view action, const std::string& id) {
  if (status.ok()) return;
  throw Failure{absl::Status(
      status.code(), fmt::format("cannot {} the backup {}: {}", action, id, std::string(status.message())))};
}

}  // namespace kvstore::cli
