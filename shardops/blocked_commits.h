#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "shardops/host.h"

namespace kvstore::shardops {

/// Blocks all commits on a host while it lives, or for about 10 s. The server ends a connection that is idle
/// for so long: a process that hangs, or whose machine has died without a word, does not hold up the host's
/// clients for longer.
///
/// On MySQL no transaction is between its log and its commit meanwhile: whatever the host has sent to those
/// who replicate from it is committed.
class BlockedCommits {
 public:
  /// UNAVAILABLE if a running statement is in the way for longer than a second, as a commit is that waits for
  /// the host's slave.
  static absl::StatusOr<BlockedCommits> Block(const Host& host, const Access& access);
  BlockedCommits(BlockedCommits&&) = default;
  /// UNAVAILABLE if commits may have been let go since Block.
  absl::Status Check();

 private:
  explicit BlockedCommits(std::unique_ptr<HostAdmin> host) : host_(std::move(host)) {}
  std::unique_ptr<HostAdmin> host_;
};

}  // namespace kvstore::shardops
