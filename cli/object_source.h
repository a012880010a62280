#pragma once

#include <memory>

#include "cli/line_source.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::cli {

/// Returns a source of all objects, those that were deleted softly too, in the order of their IDs:
/// {"id": "...", "data": {...}}. The documents are as they were stored, save line breaks between their parts.
/// The store must outlive the source.
std::unique_ptr<LineSource> NewObjectSource(KVStore& store, const DatasetSpec& spec);

}  // namespace kvstore::cli
