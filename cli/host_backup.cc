#include "cli/host_backup.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/backup_place.h"
#include "cli/backup_source.h"
#include "cli/escape.h"
#include "cli/shard_arguments.h"
#include "cli/shard_operator.h"
#include "cli/table.h"
#include "fleet_backup/binlog_chains.h"
#include "fleet_backup/host_create.h"
#include "fleet_backup/pair_backups.h"

namespace kvstore::cli {
namespace {

using fleet_backup::PairBackup;

std::string ShardsText(const backup::ServerPart& server) {
  std::string text;
  for (const backup::ShardSpan& span : server.shards) {
    text += fmt::format("{}{} {}-{}", text.empty() ? "" : ", ", ShardSpaceName(span.space), span.first,
                        span.last);
  }
  return text;
}

/// Returns the time of the last transaction of the log after a backup, in ms since 1970; 0 if none was sent.
uint64_t LogUntil(const PairBackup& pair) {
  const auto chain = OrFail(fleet_backup::ListChain(*pair.blobs, pair.manifest.id));
  if (chain.segments.empty()) return 0;
  return OrFail(fleet_backup::FetchBinlogSegment(*pair.blobs, chain.segments.back())).segment.last_ms;
}

}  // namespace

HostBackup BackUpHost(const Globals& globals, const std::string& to, const std::string& host,
                      uint64_t bytes_per_s, const Progress& progress) {
  const fleet_backup::BlobOpener open = BackupOpener(globals, to, "--to", MissingFolder::kCreate);
  const auto fleet = OpenConfiguredFleet(globals);
  const auto pair = OrFail(fleet_backup::FindPair(**fleet, ParseHost(host)));
  OrFail(fleet_backup::AddPair(*OrFail(open()), pair.domain));
  const auto blobs = OrFail(fleet_backup::OpenPairBackups(open, pair.domain));
  HostBackup made;
  made.manifest = OrFail(fleet_backup::CreateHostBackup(**fleet, pair, *blobs,
                                                        {.bytes_per_s = bytes_per_s, .progress = progress}));
  made.url = blobs->url();
  return made;
}

void ListPairBackups(const Globals& globals, const std::string& from) {
  const auto newest = OrFail(fleet_backup::NewestOfPairs(
      BackupOpener(globals, from, "--from", MissingFolder::kRefuse), /*at_ms=*/0));
  Table table({"MASTER", "SLAVE", "SHARDS", "BACKUP", "BEGAN", "SIZE", "LOG UNTIL"});
  Json list = Json::array();
  const uint64_t now = WallClockMs();
  for (const PairBackup& pair : newest.backups) {
    const backup::ServerPart& server = *pair.manifest.server;
    const uint64_t until = LogUntil(pair);
    Json json = ManifestToJson(pair.manifest);
    json["age_s"] = (now - std::min(now, pair.manifest.began_ms)) / 1000;
    if (until != 0) json["log_until_ms"] = until;
    if (!pair.problem.empty()) {
      json["problem"] = pair.problem;
      PrintErr("a newer backup of {} cannot be read: {}\n", server.host, pair.problem);
    }
    list.push_back(std::move(json));
    table.Add({server.master, server.slave, ShardsText(server), pair.manifest.id,
               UtcText(pair.manifest.began_ms), SizeText(pair.manifest.TotalBytes()),
               until == 0 ? "-" : UtcText(until)});
  }
  absl::Status problem;
  for (const fleet_backup::UnreadablePair& pair : newest.unreadable) {
    problem = absl::DataLossError(pair.ToString());
    table.Add({fmt::format("domain {}", pair.domain), "-", "-", "cannot be read", "-", "-", "-"});
  }
  if (globals.json) {
    PrintJson({{"ok", problem.ok()}, {"pairs", std::move(list)}});
  } else {
    table.Print();
  }
  OrFail(problem);
}

void PrintServer(const backup::ServerPart& server) {
  Print("MySQL server {}, slave of {}: shards {}\nGTID {}; {} before compression\n", server.host,
        server.master, ShardsText(server), server.gtid, SizeText(server.bytes));
}

void VerifyLog(BlobStore& blobs, const backup::Manifest& manifest, backup::Verified& verified) {
  const auto chain = OrFail(fleet_backup::ListChain(blobs, manifest.id));
  const absl::Status read =
      fleet_backup::ReadChain(blobs, chain, [&](const fleet_backup::BinlogSegment& segment) {
        ++verified.objects;
        verified.read_bytes += segment.log.size();
        return true;
      });
  if (absl::IsDataLoss(read)) {
    verified.problems.emplace_back(read.message());
  } else {
    OrFail(read);
  }
}

}  // namespace kvstore::cli
