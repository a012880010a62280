#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "shardops/host.h"

namespace kvstore::shardops {

/// Makes a host read-only, and ends the connections of its clients. Returns how many there were. Commits that
/// wait for a slave which may never come are cut short: they stay on the host, where who may connect to a
/// closed host can read them, and their clients are not told that they succeeded. UNAVAILABLE if a statement
/// keeps the host from becoming read-only all the same.
absl::StatusOr<uint64_t> StopClients(HostAdmin& admin);

}  // namespace kvstore::shardops
