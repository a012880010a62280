#pragma once

#include <chrono>
#include <memory>

#include "absl/status/statusor.h"
#include "backend_api/unit_reader.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"
#include "kvstore_api/dataset.h"

namespace kvstore::mysql {

/// Takes a snapshot of a dataset on all hosts of the map in force, at nearly the same time: see UnitSnapshot.
absl::StatusOr<std::unique_ptr<UnitSnapshot>> TakeSnapshot(std::shared_ptr<Fleet> fleet,
                                                           const DatasetSpec& spec,
                                                           std::shared_ptr<const Dataset> dataset,
                                                           std::chrono::seconds max_age);

}  // namespace kvstore::mysql
