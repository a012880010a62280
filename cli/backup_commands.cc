#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assembly/open_router.h"
#include "backup/create.h"
#include "backup/layout.h"
#include "backup/list.h"
#include "backup/log_verify.h"
#include "backup/prune.h"
#include "backup/verify.h"
#include "cli/backup_place.h"
#include "cli/backup_source.h"
#include "cli/commands.h"
#include "cli/dataset_backup.h"
#include "cli/escape.h"
#include "cli/follow_command.h"
#include "cli/host_backup.h"
#include "cli/progress.h"
#include "cli/restore_command.h"
#include "cli/served_backups.h"
#include "cli/table.h"
#include "client/client.h"

/// kv backup: makes backups of an embedded store, looks at them, restores and prunes them.
namespace kvstore::cli {
namespace {

using backup::Manifest;

/// How long the backup took.
double Seconds(const Manifest& manifest) {
  return (static_cast<double>(manifest.finished_ms) - static_cast<double>(manifest.began_ms)) / 1000;
}

/// Opens the store that is to be backed up, in this process. Throws Failure.
std::unique_ptr<Router> OpenStore(const OpenOptions& options) {
  auto router = OpenRouter(options);
  if (absl::IsUnavailable(router.status())) {
    throw Failure{absl::UnavailableError(
        fmt::format("{}. A server that has the store open makes a backup if it is told to: kv --server ADDR "
                    "backup create",
                    std::string(router.status().message())))};
  }
  return OrFail(std::move(router));
}

/// The arguments of kv backup create.
struct CreateOptions {
  std::string to;
  std::string dataset;
  std::string host;
  uint64_t bytes_per_s = 0;
};

/// A backup that was made, and what --json tells of it.
struct Created {
  BackupMaker::Made made;
  Json json;
};

Created CreateHere(const Globals& globals, const CreateOptions& told, const Progress& progress) {
  if (!told.host.empty()) {
    const HostBackup made = BackUpHost(globals, told.to, told.host, told.bytes_per_s, progress);
    return {MadeOf(made.manifest, made.url), ManifestToJson(made.manifest)};
  }
  const auto blobs = OpenBackups(globals, told.to, "--to", told.dataset, MissingFolder::kCreate);
  OpenOptions options = globals.StoreOptions();
  options.create_if_missing = false;
  const auto router = OpenStore(options);
  const Manifest made =
      told.dataset.empty() ? OrFail(backup::CreateBackup(OrFail(CheckpointsOf(*router, options)), *blobs,
                                                         progress, told.bytes_per_s))
                           : OrFail(BackUpDataset(*router, told.dataset, *blobs, progress, told.bytes_per_s));
  return {MadeOf(made, blobs->url()), ManifestToJson(made)};
}

Created CreateByServer(const Globals& globals, const CreateOptions& told, const Progress& progress) {
  if (!told.host.empty()) {
    WrongUsage(
        "--server: not together with --host; a MySQL server is backed up on its own machine, with the "
        "configuration of an operator: kv --config FILE backup create --host HOST");
  }
  if (!told.to.empty() || told.bytes_per_s != 0) {
    WrongUsage(
        "--server: not together with --to or --bytes-per-s; a server makes backups where, and as fast as, "
        "its configuration says (backup.to, backup.bytes_per_s)");
  }
  const auto server = OrFail(client::Client::Open(globals.server, globals.ServerConnection()));
  Created created{.made = OrFail(server->CreateBackup(told.dataset, progress)), .json = {}};
  const BackupMaker::Made& made = created.made;
  created.json = {{"id", made.id},
                  {"url", made.url},
                  {"began_ms", made.began_ms},
                  {"finished_ms", made.finished_ms},
                  {"files", made.files},
                  {"bytes", made.bytes},
                  {"sent_objects", made.sent_objects},
                  {"sent_bytes", made.sent_bytes}};
  if (!told.dataset.empty()) {
    created.json["dataset"] = told.dataset;
    created.json["units"] = made.units;
  }
  return created;
}

void AddCreate(CLI::App& group, Globals& globals) {
  auto options = std::make_shared<CreateOptions>();
  CLI::App* create = group.add_subcommand(
      "create", "Back up a store, or one dataset; sends only what the destination lacks");
  create->add_option("--to", options->to, kWhereHelp)->type_name("URL");
  CLI::Option* dataset =
      create
          ->add_option("--dataset", options->dataset, "Back up this dataset alone, whatever backend it is on")
          ->type_name("D");
  create
      ->add_option(
          "--host", options->host,
          "Back up the pair of MySQL servers that this host is in, from its slave, on whose machine this "
          "command runs")
      ->type_name("HOST")
      ->excludes(dataset);
  create
      ->add_option("--bytes-per-s", options->bytes_per_s,
                   "Read at most so many bytes of the store a second; 0: as fast as possible [0]")
      ->type_name("N");
  create->footer(
      R"(The backup has everything that was acknowledged before it began. It is there when this command has ended without an
error, and not before. After an error, or a kill, run it again: what was sent is not sent again.

A store that a server has open is backed up by that server, to the place that its configuration names (backup.to): with
--server. The right is "admin", on all datasets or on the one that is named. Without --server, no process may have the
embedded store open. A server also makes backups by itself if its configuration says how often.

With --dataset the backup has one dataset, as of one moment, in a form that any backend can restore. A dataset on MySQL
servers is backed up while servers and clients use it. Its backups are kept apart from those of whole stores.

With --host the backup has all databases of a MySQL server, read from its files by mariadb-backup. It needs
mysql.operator in the configuration and runs as a user that can read the server's files. kv backup follow makes such
backups from time to time, and sends the binary log, so that any second can be restored.

Examples:
  kv --server kv1:7400 backup create
  kv --data /var/lib/events backup create --to s3://backups/events
  kv --config kv.json backup create --to s3://backups/events --dataset pins
  kv --config operator.json backup create --host MySQL001B)");
  create->callback([options, &globals] {
    Created created;
    {
      ProgressBar bar("backup", "bytes");
      created = globals.server.empty() ? CreateHere(globals, *options, ShowBytes(bar))
                                       : CreateByServer(globals, *options, ShowBytes(bar));
    }
    if (globals.json) return PrintJson({{"ok", true}, {"backup", std::move(created.json)}});
    const BackupMaker::Made& made = created.made;
    if (!options->dataset.empty()) Print("dataset {}: {} units\n", options->dataset, made.units);
    Print("backup {}: {} in {} files; sent {} in {} objects\n", made.id, SizeText(made.bytes), made.files,
          SizeText(made.sent_bytes), made.sent_objects);
  });
}

void AddList(CLI::App& group, Globals& globals) {
  auto set = std::make_shared<BackupSet>();
  auto fleet = std::make_shared<bool>(false);
  CLI::App* list = group.add_subcommand("list", "List the backups, oldest first");
  set->AddTo(*list);
  list->add_flag("--fleet", *fleet,
                 "The pairs of MySQL servers that have backups, with the newest one of each, and the time up "
                 "to which "
                 "their binary logs were sent")
      ->excludes(list->get_option("--host"))
      ->excludes(list->get_option("--dataset"));
  list->footer(R"(Examples:
  kv backup list --from s3://backups/events
  kv --config operator.json backup list --fleet
  kv --config operator.json backup list --host MySQL001B)");
  list->callback([set, fleet, &globals] {
    if (*fleet) return ListPairBackups(globals, set->from);
    const auto blobs = set->Open(globals);
    Table table({"BACKUP", "BEGAN", "SECONDS", "SIZE", "FILES", "SENT"});
    Json backups = Json::array();
    absl::Status problem;
    for (const std::string& id : OrFail(backup::ListBackups(*blobs)).live) {
      const auto manifest = backup::ReadManifest(*blobs, id);
      // A prune may have deleted it since it was listed.
      if (absl::IsNotFound(manifest.status())) continue;
      if (!manifest.ok()) {
        problem = absl::Status(
            manifest.status().code(),
            fmt::format("cannot read the backup {}: {}", id, std::string(manifest.status().message())));
        table.Add({id, "cannot be read", "-", "-", "-", "-"});
        continue;
      }
      backups.push_back(ManifestToJson(*manifest));
      table.Add({id, UtcText(manifest->began_ms), fmt::format("{:.1f}", Seconds(*manifest)),
                 SizeText(manifest->TotalBytes()), fmt::format("{}", manifest->files.size()),
                 SizeText(manifest->sent_bytes)});
    }
    const bool none = backups.empty() && problem.ok();
    if (globals.json) {
      PrintJson({{"ok", problem.ok()}, {"backups", std::move(backups)}});
    } else {
      table.Print();
      if (none) PrintErr("{}\n", backup::WhyNone(*blobs));
    }
    OrFail(problem);
  });
}

void AddShow(CLI::App& group, Globals& globals) {
  auto source = std::make_shared<BackupSource>();
  CLI::App* show = group.add_subcommand("show", "Show what a backup consists of");
  source->AddTo(*show);
  show->footer("Example: kv backup show --from s3://backups/events");
  show->callback([source, &globals] {
    const auto blobs = source->Open(globals);
    const Manifest manifest = source->Read(*blobs);
    if (globals.json) {
      Json files = Json::array();
      for (const backup::BackedUpFile& file : manifest.files) {
        files.push_back(
            {{"path", file.path}, {"blob", file.blob}, {"size", file.size}, {"checksum", file.checksum}});
      }
      Json answer = ManifestToJson(manifest);
      answer["files"] = std::move(files);
      return PrintJson({{"ok", true}, {"backup", std::move(answer)}});
    }
    if (manifest.dataset) {
      Print("dataset {} of {}, {} units\n", manifest.dataset->spec.name, Name(manifest.dataset->spec.shape),
            manifest.dataset->units);
    }
    if (manifest.server) PrintServer(*manifest.server);
    Print("backup {}\nbegan {}, by {}\nKVStore {}, {}\n{} in {} files; sent {} in {} objects\n", manifest.id,
          UtcText(manifest.began_ms), manifest.host, manifest.version, manifest.engine,
          SizeText(manifest.TotalBytes()), manifest.files.size(), SizeText(manifest.sent_bytes),
          manifest.sent_objects);
    Table table({"FILE", "SIZE", "OBJECT"});
    for (const backup::BackedUpFile& file : manifest.files) {
      table.Add({file.path, SizeText(file.size), file.blob});
    }
    table.Print();
  });
}

void AddVerify(CLI::App& group, Globals& globals) {
  auto source = std::make_shared<BackupSource>();
  auto quick = std::make_shared<bool>(false);
  auto deep = std::make_shared<bool>(false);
  CLI::App* verify = group.add_subcommand("verify", "Verify that a backup is whole");
  source->AddTo(*verify);
  auto* only_list = verify->add_flag("--quick", *quick, "Only look whether all objects are there");
  verify->add_flag("--deep", *deep, "Read all objects, and compare them with their checksums")
      ->excludes(only_list);
  verify->footer(
      R"(Without --quick or --deep, the objects must be there with their sizes, and the files that say what is in the store
are read and decoded. Of the log that follows a backup of a store, no segment may be missing; --deep reads it, too.

Example:
  kv backup verify --from s3://backups/events --deep

Exit codes: 0 the backup is whole, as far as was looked; 1 it is not, or it could not be verified; 2 wrong usage.)");
  verify->callback([source, quick, deep, &globals] {
    const auto blobs = source->Open(globals);
    const Manifest manifest = source->Read(*blobs);
    using backup::VerifyDepth;
    const VerifyDepth depth = *deep    ? VerifyDepth::kBytes
                              : *quick ? VerifyDepth::kObjects
                                       : VerifyDepth::kSchema;
    backup::Verified verified;
    {
      ProgressBar bar("verify", "bytes");
      auto result = backup::VerifyBackup(manifest, *blobs, depth, ShowBytes(bar));
      CheckBackup(result.status(), "verify", manifest.id);
      verified = *std::move(result);
      OrFail(backup::VerifyLogChain(manifest, *blobs, depth, verified));
      if (*deep && manifest.server) VerifyLog(*blobs, manifest, verified);
    }
    const bool is_whole = verified.problems.empty();
    if (globals.json) {
      PrintJson({{"ok", is_whole},
                 {"backup", ManifestToJson(manifest)},
                 {"objects", verified.objects},
                 {"read_bytes", verified.read_bytes},
                 {"datasets", verified.datasets},
                 {"problems", verified.problems}});
    } else {
      for (const std::string& problem : verified.problems) Print("{}\n", problem);
      if (is_whole) {
        Print("backup {}: {} objects are there; {}\n", manifest.id, verified.objects,
              *deep    ? fmt::format("{} were read and have their checksums", SizeText(verified.read_bytes))
              : *quick ? std::string("none was read")
                       : fmt::format("{} datasets; use --deep to read everything", verified.datasets.size()));
      }
    }
    if (is_whole) return;
    throw Failure{absl::DataLossError(
        fmt::format("the backup {} is not whole: {} problems", manifest.id, verified.problems.size()))};
  });
}

void AddPrune(CLI::App& group, Globals& globals) {
  auto set = std::make_shared<BackupSet>();
  auto keep = std::make_shared<size_t>(0);
  CLI::App* prune =
      group.add_subcommand("prune", "Remove all but the newest backups, and delete what no backup needs");
  set->AddTo(*prune);
  prune->add_option("--keep", *keep, "How many backups to keep, at least 1")->required();
  prune->footer(fmt::format(
      R"(Objects that no backup needs are deleted {} hours after the last backup that needed them was removed, by the first
prune after that: a backup that is being made may rely on them. Until then, what was removed can still be restored by
its ID.

Example:
  kv backup prune --from s3://backups/events --keep 7)",
      backup::kGraceMs / backup::kHourMs));
  prune->callback([set, keep, &globals] {
    const auto blobs = set->Open(globals);
    const backup::Pruned pruned = OrFail(backup::PruneBackups(*blobs, *keep));
    if (globals.json) {
      return PrintJson({{"ok", true},
                        {"removed", pruned.removed},
                        {"deleted_objects", pruned.deleted_objects},
                        {"deleted_bytes", pruned.deleted_bytes},
                        {"waiting_objects", pruned.waiting_objects},
                        {"waiting_bytes", pruned.waiting_bytes}});
    }
    for (const std::string& id : pruned.removed) Print("removed {}\n", id);
    Print("deleted {} objects, {}\n", pruned.deleted_objects, SizeText(pruned.deleted_bytes));
    if (pruned.waiting_objects == 0) return;
    Print("{} objects, {}, are not needed either, and wait until their {} hours are over\n",
          pruned.waiting_objects, SizeText(pruned.waiting_bytes), backup::kGraceMs / backup::kHourMs);
  });
}

}  // namespace

void AddBackupCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = app.add_subcommand(
      "backup",
      "Backups of an embedded store, of a dataset or of MySQL servers, in a folder or a bucket of S3");
  group->require_subcommand(1);
  AddCreate(*group, globals);
  AddList(*group, globals);
  AddShow(*group, globals);
  AddVerify(*group, globals);
  AddRestoreCommand(*group, globals);
  AddPrune(*group, globals);
  AddFollowCommand(*group, globals);
  group->footer(
      R"(The keys of a bucket come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, its server from AWS_ENDPOINT_URL_S3, or
both from the configuration's "backup" (docs/configuration.md). docs/backup.md is the page for operators.

Example: kv backup list --from file:/mnt/backups/events)");
}

}  // namespace kvstore::cli
