#include "fleet_backup/pair_backups.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "backup/list.h"
#include "blobstore/blobs_below.h"

namespace kvstore::fleet_backup {
namespace {

constexpr std::string_view kDomains = "domains/";

/// Whether the pair had the shard when the backup was made.
bool HasShard(const backup::ServerPart& server, ShardSpace space, uint32_t shard) {
  return std::any_of(server.shards.begin(), server.shards.end(), [&](const backup::ShardSpan& span) {
    return span.space == space && span.first <= shard && shard <= span.last;
  });
}

uint32_t CountShards(const backup::ServerPart& server, const shardops::MoveRange& shards) {
  uint32_t count = 0;
  for (uint32_t shard = shards.first; shard <= shards.last; ++shard) {
    if (HasShard(server, shards.space, shard)) ++count;
  }
  return count;
}

/// Takes the newest of those backups that fit.
template <typename Fits>
std::optional<PairBackup> TakeNewest(std::vector<PairBackup>& backups, const Fits& fits) {
  PairBackup* newest = nullptr;
  for (PairBackup& backup : backups) {
    if (!fits(backup)) continue;
    if (newest == nullptr || newest->manifest.finished_ms < backup.manifest.finished_ms) newest = &backup;
  }
  if (newest == nullptr) return std::nullopt;
  return std::move(*newest);
}

/// Reads the newest backup that was finished by a time. Returns whether there is one that can be read.
absl::StatusOr<bool> ReadNewest(PairBackup& newest, uint64_t at_ms) {
  const auto list = backup::ListBackups(*newest.blobs);
  if (!list.ok()) return list.status();
  for (auto id = list->live.rbegin(); id != list->live.rend(); ++id) {
    auto manifest = backup::ReadManifest(*newest.blobs, *id);
    const absl::Status& read = manifest.status();
    if (absl::IsNotFound(read)) continue;  // pruned meanwhile
    if (absl::IsDataLoss(read) || absl::IsFailedPrecondition(read)) {
      if (newest.problem.empty()) newest.problem = std::string(read.message());
      continue;
    }
    if (!manifest.ok()) return read;
    if (!manifest->server || manifest->finished_ms > at_ms) continue;
    newest.manifest = *std::move(manifest);
    return true;
  }
  return false;
}

/// Returns the end of an error of somebody who did not find a backup.
std::string ProblemsText(const std::vector<UnreadablePair>& pairs) {
  std::string text;
  for (const UnreadablePair& pair : pairs) text += "; " + pair.ToString();
  return text;
}

}  // namespace

std::string UnreadablePair::ToString() const {
  return fmt::format("no backup of the pair of GTID domain {} can be read: {}", domain, problem);
}

absl::StatusOr<std::unique_ptr<BlobStore>> OpenPairBackups(const BlobOpener& open, uint64_t domain) {
  auto blobs = open();
  if (!blobs.ok()) return blobs;
  return BlobsBelow(*std::move(blobs), fmt::format("pairs/{}/", domain));
}

absl::Status AddPair(BlobStore& blobs, uint64_t domain) {
  const auto put = blobs.Put(fmt::format("{}{}", kDomains, domain), "", PutMode::kIfAbsent);
  return absl::IsAlreadyExists(put.status()) ? absl::OkStatus() : put.status();
}

absl::StatusOr<std::vector<uint64_t>> ListPairs(BlobStore& blobs) {
  const auto marks = backup::ListAll(blobs, kDomains);
  if (!marks.ok()) return marks.status();
  std::vector<uint64_t> domains;
  for (const BlobEntry& mark : *marks) {
    const std::string_view digits = std::string_view(mark.name).substr(kDomains.size());
    uint64_t domain = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), domain);
    if (error == std::errc() && end == digits.data() + digits.size()) domains.push_back(domain);
  }
  std::sort(domains.begin(), domains.end());
  return domains;
}

absl::StatusOr<NewestBackups> NewestOfPairs(const BlobOpener& open, uint64_t at_ms) {
  const auto blobs = open();
  if (!blobs.ok()) return blobs.status();
  const auto domains = ListPairs(**blobs);
  if (!domains.ok()) return domains.status();
  NewestBackups found;
  for (const uint64_t domain : *domains) {
    PairBackup newest{.domain = domain};
    auto of_pair = OpenPairBackups(open, domain);
    if (!of_pair.ok()) return of_pair.status();
    newest.blobs = *std::move(of_pair);
    const auto is_there = ReadNewest(newest, at_ms == 0 ? UINT64_MAX : at_ms);
    if (!is_there.ok()) return is_there.status();
    if (*is_there) {
      found.backups.push_back(std::move(newest));
    } else if (!newest.problem.empty()) {
      found.unreadable.push_back({domain, std::move(newest.problem)});
    }
  }
  return found;
}

bool HasHost(const backup::Manifest& manifest, const std::string& host) {
  const auto& server = manifest.server;
  return server && (server->master == host || server->slave == host);
}

absl::StatusOr<PairBackup> FindOfHost(NewestBackups newest, const std::string& host) {
  auto found =
      TakeNewest(newest.backups, [&](const PairBackup& backup) { return HasHost(backup.manifest, host); });
  if (found) return *std::move(found);
  std::string hosts;
  for (const PairBackup& backup : newest.backups) {
    hosts += fmt::format("{}{} and {}", hosts.empty() ? "" : "; ", backup.manifest.server->master,
                         backup.manifest.server->slave);
  }
  return absl::NotFoundError(fmt::format(
      "host: there is no backup of the pair of {} that was finished by then; there are some of {}{}", host,
      hosts.empty() ? "no pair" : hosts, ProblemsText(newest.unreadable)));
}

absl::StatusOr<PairBackup> FindOfShards(NewestBackups newest, const shardops::MoveRange& shards) {
  const uint32_t all = shards.last - shards.first + 1;
  auto found = TakeNewest(newest.backups, [&](const PairBackup& backup) {
    return CountShards(*backup.manifest.server, shards) == all;
  });
  if (found) return *std::move(found);
  std::string some;
  for (const PairBackup& backup : newest.backups) {
    const uint32_t count = CountShards(*backup.manifest.server, shards);
    if (count == 0) continue;
    some += fmt::format("{}{} of them were on {} and {}", some.empty() ? "" : "; ", count,
                        backup.manifest.server->master, backup.manifest.server->slave);
  }
  return absl::NotFoundError(fmt::format(
      "shards: no pair that has a backup which was finished by then had all shards {}{}{}", shards.ToString(),
      some.empty() ? "" : "; " + some + ": restore those of one pair at a time",
      ProblemsText(newest.unreadable)));
}

}  // namespace kvstore::fleet_backup
