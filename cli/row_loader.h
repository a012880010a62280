#pragma once

#include <memory>

#include "cli/line_loader.h"

namespace kvstore::cli {

/// Returns a loader of rows. A cell with a timestamp is compared with the stored cell of that time, a cell
/// without one with the newest. A cell that no reader would see, because it has expired or max_versions newer
/// ones exist, counts as stored. The store must outlive the loader.
std::unique_ptr<LineLoader> NewRowLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode);

}  // namespace kvstore::cli
