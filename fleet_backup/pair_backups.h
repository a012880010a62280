#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "shardops/move_record.h"

/// Where the backups of a fleet's pairs are in a store of backups. A pair is known by its GTID domain, which
/// its two hosts share and keep when they change their roles, or when one of them is replaced.
///
///   domains/DOMAIN    empty: there are backups of the pair
///   pairs/DOMAIN/...  a store of backups of its own (backup/layout.h), with the pair's binary log below log/
namespace kvstore::fleet_backup {

/// Opens the store of backups in which those of pairs are.
using BlobOpener = std::function<absl::StatusOr<std::unique_ptr<BlobStore>>()>;

/// Opens the store of a pair's backups.
absl::StatusOr<std::unique_ptr<BlobStore>> OpenPairBackups(const BlobOpener& open, uint64_t domain);
/// Makes the store of a pair's backups known to ListPairs.
absl::Status AddPair(BlobStore& blobs, uint64_t domain);
/// Returns the domains of the pairs that have backups, ascending.
absl::StatusOr<std::vector<uint64_t>> ListPairs(BlobStore& blobs);

/// A backup of a pair, and where it is.
struct PairBackup {
  uint64_t domain = 0;
  std::unique_ptr<BlobStore> blobs;
  backup::Manifest manifest;
  /// The error of the newest later backup that cannot be read; empty if there is none.
  std::string problem;
};

/// A pair whose backups cannot be read.
struct UnreadablePair {
  uint64_t domain = 0;
  std::string problem;

  /// Says it in a sentence.
  std::string ToString() const;
};

/// The newest backups of a fleet's pairs, by domain.
struct NewestBackups {
  std::vector<PairBackup> backups;
  /// The pairs that have backups of which none that was finished by the time can be read.
  std::vector<UnreadablePair> unreadable;
};

/// Returns the newest backup that can be read and was finished by a time, of each pair that has one: one that
/// is damaged keeps nobody from finding others.
///
/// at_ms  0: the newest of all.
absl::StatusOr<NewestBackups> NewestOfPairs(const BlobOpener& open, uint64_t at_ms);

/// Whether a backup is of a pair that had this host, as shard maps name it.
bool HasHost(const backup::Manifest& manifest, const std::string& host);

/// Returns the backup among those that is of a pair with this host: the newest one, if a host was in several.
/// NOT_FOUND, with the hosts of which there are backups and with the pairs whose backups cannot be read, if
/// there is none.
absl::StatusOr<PairBackup> FindOfHost(NewestBackups newest, const std::string& host);
/// Returns the backup among those that is of the pair that had these shards: the newest one, if they moved.
/// NOT_FOUND if no pair had all of them; the message says which pairs had some, and whose backups cannot be
/// read.
absl::StatusOr<PairBackup> FindOfShards(NewestBackups newest, const shardops::MoveRange& shards);

}  // namespace kvstore::fleet_backup
