#pragma once

#include <vector>

#include "assembly/config.h"
#include "operate/checks.h"

namespace kvstore::cli {

/// Returns the checks that the leader of `kv operate` makes besides those of the fleet's hosts: for
/// migrations that need a person or stand still, for backups of pairs that are too old, and one that, once a
/// day, purges what has expired.
///
/// The store is opened when the first of them needs it.
///
/// dry_run  Nothing is purged.
std::vector<operate::Check> StoreChecks(const Config& config, bool dry_run);

}  // namespace kvstore::cli
