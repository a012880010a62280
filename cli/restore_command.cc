#include "cli/restore_command.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "backup/log_restore.h"
#include "cli/amounts.h"
#include "cli/backup_place.h"
#include "cli/backup_source.h"
#include "cli/dataset_backup.h"
#include "cli/escape.h"
#include "cli/host_restore.h"
#include "cli/progress.h"
#include "cli/restored_store.h"
#include "cli/shard_arguments.h"
#include "cli/table.h"

/// kv backup restore: a store into a new folder, or a dataset into a store.
namespace kvstore::cli {
namespace {

using backup::Manifest;

/// The arguments of kv backup restore.
struct RestoreOptions : HostRestoreArguments {
  bool catalog = false;
  std::string as;
  std::string backend;
};

void RestoreIntoStore(const RestoreOptions& options, const Manifest& manifest, BlobStore& blobs,
                      const Globals& globals) {
  const DatasetSpec made = RestoreDataset(globals, manifest, blobs, options.as, options.backend);
  const backup::DatasetPart& dataset = *manifest.dataset;
  if (globals.json) {
    Json answer = {{"ok", true},
                   {"backup", ManifestToJson(manifest)},
                   {"dataset", made.name},
                   {"backend", made.backend}};
    if (made.shape == Shape::kObjects) answer["type"] = made.type;
    return PrintJson(answer);
  }
  Print("{} on {} is the dataset {} as it was at {}: {} units\n", made.name, made.backend, dataset.spec.name,
        UtcText(dataset.as_of_ms), dataset.units);
  if (made.type != dataset.spec.type) {
    Print(
        "another dataset has the type number {}, so the restored objects have type number {} in their IDs\n",
        dataset.spec.type, made.type);
  }
}

/// Restores into a new folder, as of a time if that was told.
void RestoreIntoFolder(const RestoreOptions& options, const Manifest& manifest, BlobStore& blobs,
                       const Globals& globals) {
  const backup::Replayed replayed = RestoreFolder(manifest, blobs, options.at_ms, options.to);
  if (globals.json) {
    Json answer = {{"ok", true},
                   {"backup", ManifestToJson(manifest)},
                   {"folder", options.to},
                   {"as_of_ms", replayed.as_of_ms}};
    if (options.at_ms != 0) {
      answer["replayed_writes"] = replayed.writes;
      answer["log_ends_there"] = replayed.at_end;
    }
    return PrintJson(answer);
  }
  Print("{} is the store as it was at {}: {} in {} files\n", options.to, UtcText(replayed.as_of_ms),
        SizeText(manifest.TotalBytes()), manifest.files.size());
  if (options.at_ms == 0) return;
  Print("it is the backup {} and {} writes of the log after it{}\n", manifest.id, replayed.writes,
        replayed.at_end ? "; the log that was sent ends there" : "");
}

}  // namespace

void AddRestoreCommand(CLI::App& group, Globals& globals) {
  auto options = std::make_shared<RestoreOptions>();
  CLI::App* restore = group.add_subcommand(
      "restore",
      "Restore a backup into a new folder, a dataset into a store, or MySQL servers or their shards");
  options->source.AddTo(*restore);
  auto* to =
      restore
          ->add_option("--to", options->to, "The folder to restore into; it must be empty, or not exist yet")
          ->type_name("DIR");
  CLI::Option* dataset = restore->get_option("--dataset")->excludes(to);
  TakeTime(
      restore->add_option("--at", options->at_ms,
                          "As the store was at this time: from the last backup before it, and from the log "
                          "after that, if the server sends it (backup.log), or kv backup follow does"))
      ->excludes(dataset);
  CLI::Option* shards =
      restore
          ->add_option("--shards", options->shards,
                       "Restore only these shards of a fleet, from the backup of the pair that had them then")
          ->type_name("A-B")
          ->excludes(dataset);
  AddModFlag(*restore, options->space, "With --shards: they are mod shards, which have the rows")
      ->needs(shards);
  restore
      ->add_flag("--catalog", options->catalog,
                 "Put the settings of datasets and the shard maps back into a ZooKeeper that has lost them; "
                 "with --at, as they were then")
      ->excludes(dataset)
      ->excludes(shards)
      ->excludes(to);
  restore->add_option("--as", options->as, "The name of the restored dataset; default: the one it had")
      ->type_name("NAME")
      ->needs(dataset);
  restore
      ->add_option("--backend", options->backend,
                   "The backend on which it is restored; default: the one it was on, or that of new datasets")
      ->type_name("B")
      ->needs(dataset);
  restore->footer(
      R"(Every file is compared with its checksum. The folder is a store when this command has ended without an error, and
not before. If the command is killed, the folder does not open: remove it.

With --at the store is as it was at that time, to a second: nothing that was written later is in it. The answer says of
which time it is.

With --dataset a backup of that dataset is restored into the store that --data or --config names, on any backend. There
must be no dataset of its name. Clients see it only when it is complete; a restore that fails or is killed leaves
nothing behind. Objects keep their IDs, unless another dataset has the type number: then they get another one.

With --host the data of a MySQL server is restored, to be that of a new host of the fleet. With --shards it is restored
into a server of its own that has only these shards, so that you can inspect them and copy from them; the output says
how. MariaDB's server and mariadb-backup must be installed here, in the version of the servers. The disk needs space for
the whole server and its binary logs.

Examples:
  kv backup restore --from s3://backups/events --to /var/lib/events
  kv backup restore --from s3://backups/events --at 2026-11-24T03:14:00Z --to /var/lib/events
  kv --config kv.json backup restore --from s3://backups/events --dataset pins --as pins_of_monday
  kv backup restore --from s3://backups/fleet --shards 3424-3431 --at 2026-11-24T03:14:00Z --to /srv/restored
  kv backup restore --from s3://backups/fleet --host MySQL001A --at 2026-11-24T03:14:00Z --to /srv/restored
  kv --config operator.json backup restore --from s3://backups/fleet --catalog)");
  restore->callback([options, &globals] {
    const BackupSource& source = options->source;
    if (options->catalog) return RestoreCatalog(*options, globals);
    if (source.dataset.empty() && options->to.empty()) {
      WrongUsage("--to: name the folder of the restored store, or with --dataset the dataset to restore");
    }
    if (!source.host.empty() || !options->shards.empty()) return RestoreServer(*options, globals);
    const auto blobs = source.Open(globals);
    const Manifest manifest = ChooseBackup(options->source, *blobs, options->at_ms);
    if (!source.dataset.empty()) return RestoreIntoStore(*options, manifest, *blobs, globals);
    RestoreIntoFolder(*options, manifest, *blobs, globals);
  });
}

}  // namespace kvstore::cli
