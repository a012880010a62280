#pragma once

#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "kvstore_api/dataset.h"

namespace kvstore {

/// The datasets of a backend that are neither being created nor being dropped.
///
/// entries  of the catalog.
/// backend  the name that datasets have for it.
std::vector<DatasetSpec> DatasetsOf(const std::vector<CatalogEntry>& entries, std::string_view backend);

}  // namespace kvstore
