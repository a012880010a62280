#pragma once

#include <memory>

#include "cli/line_source.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::cli {

/// Returns a source of all entries of a mapping, in the order of (from, to):
/// {"from": "...", "to": "...", "sequence": ...}. The store must outlive the source.
std::unique_ptr<LineSource> NewMappingSource(KVStore& store, const DatasetSpec& spec);

}  // namespace kvstore::cli
