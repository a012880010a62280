#pragma once

#include <chrono>
#include <optional>

#include "absl/status/status.h"

namespace kvstore::shardops {

/// How long an operation that waits for a slave puts up with one that does not replicate: one that has lost
/// its master for a moment connects again by itself.
inline constexpr std::chrono::seconds kMaxReplicationGap{20};

/// Decides when an operation that waits for a slave gives up because the slave does not replicate. The gap is
/// measured from the first answer that says so: time in which nobody asked, or in which the slave was slow to
/// answer, is not held against it. Externally synchronised.
class ReplicationGap {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Takes an answer of CheckReplicates, and when it was given. Returns whether every answer of the last
  /// kMaxReplicationGap, or longer, was that the slave does not replicate.
  bool IsTooLong(const absl::Status& replicates, Time now) {
    if (replicates.ok()) {
      since_.reset();
      return false;
    }
    if (!since_) since_ = now;
    return now - *since_ >= kMaxReplicationGap;
  }

 private:
  std::optional<Time> since_;  // the first of the answers in a row that the slave does not replicate
};

}  // namespace kvstore::shardops
