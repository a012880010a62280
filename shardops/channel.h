#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "shardops/host.h"

/// Some databases of one master, kept up to date on another: MariaDB's own replication, under a name of its
/// own beside whatever else the host follows, with a filter. It goes by the position in the source's binary
/// log; transactions keep their GTIDs, so that both hosts need domains of their own.
///
/// The server forgets the filter when it restarts: a channel that was restarted is of no more use.
namespace kvstore::shardops {

/// A place in a binary log.
struct Position {
  std::string file;
  uint64_t offset = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

/// Where a master's binary log ends now.
absl::StatusOr<Position> ReadPosition(HostAdmin& source);

/// The databases of shards first..last, as patterns of a replication filter: "db0001_.%,db00020.%".
std::string Patterns(bool mod, uint32_t first, uint32_t last);

struct ChannelState {
  Host source;
  std::string patterns;
  bool receives = false;
  bool applies = false;
  Position applied;   ///< What of the source's log is applied, or left out by the filter.
  std::string error;  ///< The last; empty: none.
};

/// The one channel of a host. Neither host may be the other's slave. Externally synchronised.
class Channel {
 public:
  /// `target` must outlive it.
  explicit Channel(HostAdmin& target) : target_(target) {}

  /// None: there is no channel.
  absl::StatusOr<std::optional<ChannelState>> Read();
  /// Begins to apply what the source has written behind `from`.
  absl::Status Start(const Host& source, const Access& access, const Position& from,
                     const std::string& patterns);
  /// Waits until all up to `position` is applied. DEADLINE_EXCEEDED after `wait`, UNAVAILABLE if it has no
  /// connection by then; FAILED_PRECONDITION with the server's error if it stands still.
  absl::Status Await(const Position& position, std::chrono::milliseconds wait);
  /// Stops applying at once, ...
  absl::Status Hold();
  /// ... applies up to `position` and not beyond, ...
  absl::Status HoldAt(const Position& position, std::chrono::milliseconds wait);
  /// ... and goes on.
  absl::Status GoOn();
  /// Ends it, if there is one.
  absl::Status End();

 private:
  HostAdmin& target_;
};

}  // namespace kvstore::shardops
