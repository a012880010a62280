#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kvstore_api/shard_space.h"
#include "shardops/channel_state.h"
#include "shardops/host.h"

/// A channel keeps copies of some databases of one master up to date on another master. It is a replication
/// connection of the server ("multi-source replication"), named kvstore_move, with a filter, beside whatever
/// else the host replicates from. The channel begins at a position in the source's binary log; transactions
/// keep their GTIDs. So both hosts need a gtid_domain_id of their own on MariaDB.
///
/// The server forgets the filter when it restarts, and would then apply all databases: a channel whose target
/// was restarted must not be used any more. On MySQL it forgets the login at the source as well, and so gets
/// nothing more.
namespace kvstore::shardops {

/// Returns where a master's binary log ends now, and what it has committed. FAILED_PRECONDITION if the host
/// writes none.
absl::StatusOr<Position> ReadPosition(HostAdmin& source);

/// Returns the databases of the shards first..last as patterns of a replication filter:
/// "db0001_.%,db00020.%".
std::string ReplicationPatterns(ShardSpace space, uint32_t first, uint32_t last);

class ChannelDialect;

/// The one channel of a host. Neither the source nor the target may be the other's slave. Externally
/// synchronised.
class Channel {
 public:
  /// `target` must outlive the channel.
  ///
  /// from  Where the channel begins, or has begun: what the source had committed by then is in the copy.
  ///       Needed by all calls but Read and End.
  explicit Channel(HostAdmin& target, Position from = {});

  /// Returns the channel's state; nullopt if the target has no channel.
  absl::StatusOr<std::optional<ChannelState>> Read();
  /// Begins to apply what the source writes from there on.
  absl::Status Start(const Host& source, const Access& access, const std::string& patterns);
  /// Waits until all of the source's log up to `position` is applied. DEADLINE_EXCEEDED after `wait`;
  /// UNAVAILABLE instead if the channel has reported an error by then, such as a lost connection;
  /// FAILED_PRECONDITION, with the server's error, as soon as the channel does not apply any more.
  absl::Status AwaitApplied(const Position& position, std::chrono::milliseconds wait);
  /// Waits for the same, and until the target is connected to the source. A target that has all that the
  /// source has now, but does not get what comes next, has not caught up: the source may have been started
  /// again without what it had sent. Errors as of AwaitApplied.
  absl::Status AwaitCaughtUp(const Position& position, std::chrono::milliseconds wait);
  /// Stops applying at once; the target goes on receiving.
  absl::Status Pause();
  /// Applies what a paused channel has received up to `position`, and pauses again. Errors as of
  /// AwaitApplied.
  absl::Status ApplyUpTo(const Position& position, std::chrono::milliseconds wait);
  /// Goes on after Pause or ApplyUpTo.
  absl::Status Resume(const Access& access);
  /// Removes the channel, if there is one.
  absl::Status End();

 private:
  absl::Status Await(const Position& position, std::chrono::milliseconds wait, bool connected);

  HostAdmin& target_;
  const Position from_;
  const ChannelDialect& dialect_;
};

}  // namespace kvstore::shardops
