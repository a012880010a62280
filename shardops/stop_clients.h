#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "shardops/host.h"

namespace kvstore::shardops {

/// Makes a host read-only, and ends the connections of its clients. Returns how many there were. Commits that
/// wait for a slave which may never come are cut short: they stay on the host, and their clients are not
/// told that they succeeded. If it is cut short on MySQL, the host may stay closed to clients until it is
/// called again. UNAVAILABLE if a statement keeps the host from becoming read-only all the same;
/// FAILED_PRECONDITION if a connection cannot be ended, or the host stays closed.
absl::StatusOr<uint64_t> StopClients(HostAdmin& admin);

}  // namespace kvstore::shardops
