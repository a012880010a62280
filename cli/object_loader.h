#pragma once

#include <memory>

#include "cli/line_loader.h"

namespace kvstore::cli {

/// Returns a loader of objects. The store must outlive the loader.
std::unique_ptr<LineLoader> NewObjectLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode);

/// Returns a loader of mappings. The store must outlive the loader.
std::unique_ptr<LineLoader> NewMappingLoader(KVStore& store, const DatasetSpec& spec, const LoadMode& mode);

}  // namespace kvstore::cli
