#pragma once

#include <memory>

#include "cli/line_source.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::cli {

/// Returns a source of all rows with all visible cells, in the form of `kv scan --json`. A row that is larger
/// than a piece of a scan takes several lines. The store must outlive the source.
absl::StatusOr<std::unique_ptr<LineSource>> NewRowSource(KVStore& store, const DatasetSpec& spec);

}  // namespace kvstore::cli
