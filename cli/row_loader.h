#pragma once

#include <memory>

#include "cli/line_loader.h"

namespace kvstore::cli {

/// Loads rows. A cell with a timestamp is compared with the cell of that time, one without with the newest;
/// one that no reader would see, because it is expired or max_versions newer ones are there, counts as there.
std::unique_ptr<LineLoader> NewRowLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode);

}  // namespace kvstore::cli
