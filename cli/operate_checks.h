#pragma once

#include <vector>

#include "assembly/config.h"
#include "operate/checks.h"

namespace kvstore::cli {

/// What the leader of `kv operate` looks at besides the fleet's hosts: migrations that need a person or stand
/// still, backups of pairs that are too old, and, once a day, that what has expired is purged.
///
/// The store is opened when the first of them needs it.
///
/// dry_run  Nothing is purged.
std::vector<operate::Check> StoreChecks(const Config& config, bool dry_run);

}  // namespace kvstore::cli
