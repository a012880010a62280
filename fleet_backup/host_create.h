#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "kvstore_api/types.h"
#include "shardops/fleet_operator.h"
#include "shardops/maps.h"

namespace kvstore::fleet_backup {

/// A pair of a fleet, of which backups are made.
struct BackedUpPair {
  shardops::Pair hosts;
  uint64_t domain = 0;  ///< Its gtid_domain_id.
  std::vector<backup::ShardSpan> shards;
};

/// Returns the pair of a host, by the maps in force. NOT_FOUND if the host is in no map; else errors are
/// those of ZooKeeper, and of the slave, which is asked for the domain.
absl::StatusOr<BackedUpPair> FindPair(shardops::FleetOperator& fleet, const Host& host);

struct HostCreateOptions {
  /// The most bytes a second that are read from the server's stream; 0: no limit.
  uint64_t bytes_per_s = 0;
  /// Called with the bytes of the stream that were read so far, and an estimate of the total. May be null.
  Progress progress;
};

/// Makes a backup of a pair from its slave: runs mariadb-backup on this machine, which must be the slave's,
/// cuts its stream into pieces, sends those that the destination lacks, and puts the manifest last. It keeps
/// the promises of CreateBackup (backup/create.h). Neither server is paused.
///
/// blobs  the store of the pair's backups (OpenPairBackups).
///
/// FAILED_PRECONDITION  this is not the slave's machine; the slave does not log what it replicates, or is
///                      itself an incomplete copy; or the destination has backups of another pair with the
///                      same GTID domain.
/// PERMISSION_DENIED    this user cannot read the server's files.
/// UNAVAILABLE          the slave does not answer, or does not replicate.
/// ABORTED              an operator has changed the slave meanwhile.
/// INTERNAL             mariadb-backup failed, with what it said.
absl::StatusOr<backup::Manifest> CreateHostBackup(shardops::FleetOperator& fleet, const BackedUpPair& pair,
                                                  BlobStore& blobs, const HostCreateOptions& options);

}  // namespace kvstore::fleet_backup
