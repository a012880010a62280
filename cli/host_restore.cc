#include "cli/host_restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "assembly/backend_config.h"
#include "backup/list.h"
#include "backup/log_restore.h"
#include "catalog/shared_nodes.h"
#include "catalog/zookeeper_nodes.h"
#include "cli/backup_place.h"
#include "cli/escape.h"
#include "cli/progress.h"
#include "cli/restored_shards.h"
#include "cli/restored_store.h"
#include "cli/shard_arguments.h"
#include "cli/table.h"
#include "fleet_backup/binlog_chains.h"
#include "fleet_backup/host_restore.h"
#include "fleet_backup/pair_backups.h"
#include "fleet_backup/stream_extract.h"

namespace kvstore::cli {
namespace {

namespace fs = std::filesystem;
using fleet_backup::PairBackup;
using fleet_backup::RestoredHost;

/// Shows a progress bar for each step.
class StepBar {
 public:
  bool Show(std::string_view step, uint64_t done, uint64_t total) {
    if (!bar_ || step != step_) {
      bar_.reset();
      step_ = step;
      bar_ = std::make_unique<ProgressBar>(step_, "bytes");
    }
    bar_->Show(done, total, SizeText(done));
    return true;
  }
  void Close() { bar_.reset(); }

 private:
  std::string step_;
  std::unique_ptr<ProgressBar> bar_;
};

/// Finds the backup that is restored.
PairBackup FindBackup(const HostRestoreArguments& arguments, const Globals& globals,
                      const std::optional<shardops::MoveRange>& shards) {
  const BackupSource& source = arguments.source;
  auto newest = OrFail(fleet_backup::NewestOfPairs(
      BackupOpener(globals, source.from, "--from", MissingFolder::kRefuse), arguments.at_ms));
  PairBackup found = source.host.empty() ? OrFail(fleet_backup::FindOfShards(std::move(newest), *shards))
                                         : OrFail(fleet_backup::FindOfHost(std::move(newest), source.host));
  if (!found.problem.empty() && source.id.empty()) {
    PrintErr("a newer backup of the pair cannot be read, so an older one is restored: {}\n", found.problem);
  }
  if (!source.id.empty()) found.manifest = OrFail(backup::ReadManifest(*found.blobs, source.id));
  return found;
}

Json ToJson(const RestoredHost& restored, const backup::Manifest& manifest,
            const HostRestoreArguments& arguments) {
  Json json = {{"ok", true},
               {"backup", ManifestToJson(manifest)},
               {"folder", arguments.to},
               {"gtid", restored.gtid},
               {"as_of_ms", restored.log.as_of_ms}};
  if (arguments.at_ms != 0) {
    json["transactions"] = restored.log.transactions;
    json["log_ends_there"] = restored.log.at_end;
  }
  return json;
}

void Tell(const RestoredHost& restored, const backup::Manifest& manifest,
          const HostRestoreArguments& arguments, const std::optional<shardops::MoveRange>& shards) {
  const std::string folder = fs::absolute(arguments.to).lexically_normal().string();
  const std::string what =
      shards ? fmt::format("{} has the shards {} of {} as they were", folder, shards->ToString(),
                           manifest.server->host)
             : fmt::format("{}/mysql is the data of {} as it was", folder, manifest.server->host);
  Print("{} at {}: the backup {}{}\n", what, UtcText(restored.log.as_of_ms), manifest.id,
        arguments.at_ms == 0
            ? std::string()
            : fmt::format(" and {} transactions of the binary log after it{}", restored.log.transactions,
                          restored.log.at_end ? "; the log that was sent ends there" : ""));
  if (!shards) {
    Print(
        "GTID {}; docs/runbook.md, 'Both hosts of a pair are lost', says how it becomes a host of the "
        "fleet\n",
        restored.gtid);
    return;
  }
  Print("to look at them:\n  mariadbd --defaults-file={0}/my.cnf &\n  kv --config {0}/kv.json dataset list\n",
        folder);
}

/// The nodes of a backup, and when that was.
struct FoundNodes {
  uint64_t at_ms = 0;
  std::string of;
  std::string text;
};

/// Returns the nodes at the end of the log that follows a backup of a pair; nullopt if the log has none.
std::optional<FoundNodes> LastNodesOfLog(BlobStore& blobs, const fleet_backup::BinlogChain& chain) {
  if (chain.segments.empty()) return std::nullopt;
  const auto last = OrFail(fleet_backup::FetchBinlogSegment(blobs, chain.segments.back()));
  FoundNodes found{.at_ms = std::max(last.segment.last_ms, last.segment.nodes_ms), .of = "", .text = ""};
  found.text = OrFail(fleet_backup::NodesAfter(blobs, last.segment));
  return found.text.empty() ? std::nullopt : std::optional(std::move(found));
}

/// Returns the same as of a time: from the segments of which a restore to that time plays all transactions.
std::optional<FoundNodes> NodesOfLogAt(BlobStore& blobs, const fleet_backup::BinlogChain& chain,
                                       uint64_t at_ms) {
  FoundNodes found;
  OrFail(fleet_backup::ReadChain(blobs, chain,
                                 [&](const fleet_backup::BinlogSegment& segment) -> absl::StatusOr<bool> {
                                   if (segment.last_ms / 1000 >= at_ms / 1000) return false;
                                   // Nodes are read when a segment is sent, which may be long after its
                                   // transactions.
                                   if (segment.nodes_ms / 1000 >= at_ms / 1000) return false;
                                   found.at_ms = std::max({found.at_ms, segment.last_ms, segment.nodes_ms});
                                   if (!segment.nodes.empty()) found.text = segment.nodes;
                                   return true;
                                 }));
  return found.text.empty() ? std::nullopt : std::optional(std::move(found));
}

/// Returns the nodes that a backup has or, if it is of a pair and its log has newer ones, those of the log.
///
/// at_ms  as of this time, by which the backup must have been finished; 0: the newest.
FoundNodes NodesOfBackup(BlobStore& blobs, const backup::Manifest& manifest, uint64_t at_ms) {
  if (manifest.server) {
    const auto chain = OrFail(fleet_backup::ListChain(blobs, manifest.id));
    auto found = at_ms == 0 ? LastNodesOfLog(blobs, chain) : NodesOfLogAt(blobs, chain, at_ms);
    if (found) {
      found->at_ms = std::max(found->at_ms, manifest.finished_ms);
      found->of = fmt::format("backup {} and the log after it", manifest.id);
      return *std::move(found);
    }
  }
  return {.at_ms = manifest.finished_ms,
          .of = "backup " + manifest.id,
          .text = OrFail(fleet_backup::ReadNodesFile(manifest, blobs))};
}

/// Returns those of the newest backup of any pair, or of the whole store.
///
/// at_ms  as of this time; 0: the newest.
FoundNodes NewestNodes(const BackupSource& source, const Globals& globals, uint64_t at_ms) {
  FoundNodes newest;
  const auto pairs = OrFail(fleet_backup::NewestOfPairs(
      BackupOpener(globals, source.from, "--from", MissingFolder::kRefuse), at_ms));
  for (const fleet_backup::UnreadablePair& pair : pairs.unreadable) PrintErr("{}\n", pair.ToString());
  for (const PairBackup& pair : pairs.backups) {
    FoundNodes found = NodesOfBackup(*pair.blobs, pair.manifest, at_ms);
    if (found.at_ms > newest.at_ms) newest = std::move(found);
  }
  const auto blobs = OpenBackups(globals, source.from, "--from", "", MissingFolder::kRefuse);
  const auto found = backup::FindBackupBefore(*blobs, at_ms == 0 ? UINT64_MAX : at_ms);
  if (!absl::IsNotFound(found.status())) {
    const backup::BackupBefore store = OrFail(found);
    if (!store.problem.empty()) {
      PrintErr("a newer backup of the store cannot be read: {}\n", store.problem);
    }
    const backup::Manifest& manifest = store.manifest;
    if (manifest.finished_ms > newest.at_ms && manifest.Find(kSharedNodesFile) != nullptr) {
      newest = {manifest.finished_ms, "backup " + manifest.id,
                OrFail(fleet_backup::ReadNodesFile(manifest, *blobs))};
    }
  }
  if (!newest.text.empty()) return newest;
  throw Failure{absl::NotFoundError(
      fmt::format("backup: there is none{} that has what was in ZooKeeper, be it of a pair "
                  "of MySQL servers or of a store",
                  at_ms == 0 ? "" : ", finished by then,"))};
}

}  // namespace

void RestoreServer(const HostRestoreArguments& arguments, const Globals& globals) {
  std::optional<shardops::MoveRange> shards;
  if (!arguments.shards.empty()) shards = ParseRange(arguments.shards, arguments.space);
  const PairBackup found = FindBackup(arguments, globals, shards);
  StepBar bar;
  fleet_backup::HostRestoreOptions options{
      .at_ms = arguments.at_ms,
      .shards = shards,
      .report = nullptr,
      .progress = [&bar](std::string_view step, uint64_t done, uint64_t total) {
        return bar.Show(step, done, total);
      }};
  if (!globals.json) {
    options.report = [&bar](const std::string& line) {
      bar.Close();
      Print("{}\n", line);
      FlushOut();
    };
  }
  fleet_backup::WithServer with_server;
  if (shards) {
    with_server = [&](fleet_backup::ScratchServer& server, const RestoredHost& restored) {
      return WriteStore(arguments.to, server, restored, *shards);
    };
  }
  auto restored = fleet_backup::RestoreHost(found.manifest, *found.blobs, arguments.to, options, with_server);
  bar.Close();
  CheckBackup(restored.status(), "restore", found.manifest.id);
  if (globals.json) return PrintJson(ToJson(*restored, found.manifest, arguments));
  Tell(*restored, found.manifest, arguments, shards);
}

void RestoreCatalog(HostRestoreArguments& arguments, const Globals& globals) {
  const OpenOptions options = globals.StoreOptions();
  const MySqlFleetOptions* const fleet = FindFleet(options);
  const bool has_fleet = fleet != nullptr && !fleet->zookeeper.servers.empty();
  if (!options.coordination && !has_fleet) {
    throw Failure{absl::InvalidArgumentError(
        "config: zookeeper: is missing: name the ZooKeeper into which the catalog is restored")};
  }
  BackupSource& source = arguments.source;
  FoundNodes found;
  if (source.host.empty() && source.id.empty()) {
    found = NewestNodes(source, globals, arguments.at_ms);
  } else {
    const auto blobs = source.Open(globals);
    found = NodesOfBackup(*blobs, ChooseBackup(source, *blobs, arguments.at_ms), arguments.at_ms);
  }
  const SharedNodes nodes = OrFail(DecodeSharedNodes(found.text));
  ZooKeeper zookeeper(options.coordination ? options.coordination->zookeeper : fleet->zookeeper, nullptr);
  const std::string root = options.coordination ? options.coordination->root : fleet->root;
  const RestoredNodes restored = OrFail(RestoreSharedNodes(zookeeper, root, nodes));
  if (globals.json) {
    return PrintJson(
        {{"ok", true}, {"as_of_ms", found.at_ms}, {"made", restored.made}, {"left_out", restored.left_out}});
  }
  Print("{} of {} nodes below {} were missing and are as they were at {}, by the {}\n", restored.made.size(),
        nodes.size(), root, UtcText(found.at_ms), found.of);
  for (const std::string& path : restored.left_out) {
    Print("left out, because that dataset did not exist then, or its entry could not be read: {}\n", path);
  }
}

}  // namespace kvstore::cli
