#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "blobstore/blob_store.h"
#include "fleet_backup/binlog_segment.h"
#include "shardmap/shard_map.h"
#include "shardops/gtid.h"
#include "shardops/host.h"

namespace kvstore::fleet_backup {

/// Sends the binary log of a pair, read from one of its hosts by GTID, as the continuation of the pair's
/// newest backup. The shipper finds in the store how far the log was sent, so any process, on either host,
/// goes on where another one ended. Externally synchronised.
class BinlogShipper {
 public:
  struct Options {
    uint64_t domain = 0;  ///< The pair's GTID domain.
    /// Returns what processes share in ZooKeeper now, encoded (SharedNodesReader).
    std::function<absl::StatusOr<std::string>()> nodes;
  };
  /// The counts since this shipper was made.
  struct Figures {
    uint64_t segments = 0;
    uint64_t transactions = 0;
    uint64_t sent_bytes = 0;
  };

  /// blobs  the store of the pair's backups; must outlive it.
  BinlogShipper(BlobStore& blobs, shardops::Access access, Options options)
      : blobs_(blobs), access_(std::move(access)), options_(std::move(options)) {}

  /// Sends all that the host has logged by now and that was not sent.
  ///
  /// NOT_FOUND     there is no backup that the log could follow.
  /// OUT_OF_RANGE  the host does not have what is next any more, since its binary logs were purged: no time
  ///               between what was sent last and the end of the next backup can be restored.
  /// UNAVAILABLE   the host does not answer, or lacks what was sent already: it is behind, or the other host
  ///               of the pair sends.
  absl::Status Ship(const Host& host);
  /// Looks for the newest backup, and for what was sent after it, at the next call of Ship.
  void Forget() { chain_.reset(); }

  const Figures& figures() const { return figures_; }
  /// "20261124T031459Z-1a2b3c4d", the backup that the log follows; empty before the first Ship.
  std::string chain() const { return chain_ ? chain_->id : ""; }

 private:
  /// The chain to which segments are added.
  struct Chain {
    std::string id;
    uint64_t number = 1;   // of the next segment
    std::string previous;  // the checksum of the last one
    shardops::GtidPosition position;
    std::string nodes;  // that were sent last; empty: none were
    uint64_t nodes_in = 0;
  };

  absl::Status FindChain();
  /// ABORTED if another process has sent the next segment.
  absl::Status Put(BinlogSegment segment);
  /// Reads what the host has, and puts it, a segment at a time.
  absl::Status Send(const Host& host);

  BlobStore& blobs_;
  const shardops::Access access_;
  const Options options_;
  std::optional<Chain> chain_;
  Figures figures_;
};

}  // namespace kvstore::fleet_backup
