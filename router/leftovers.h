#pragma once

#include "absl/status/status.h"
#include "backend_api/backend.h"
#include "catalog/catalog.h"
#include "kvstore_api/dataset.h"

namespace kvstore {

/// Creates a dataset, whose entry is in the catalog already, in its backend. If the backend still has data of
/// a dataset of that name that the catalog does not name any more (backend_api/leftover.h), that is removed
/// first, provided that it is empty (Backend::DropLeftover).
absl::Status CreateWithoutLeftovers(Backend& backend, Catalog& catalog, const DatasetSpec& spec);

}  // namespace kvstore
