#pragma once

#include "absl/status/statusor.h"
#include "backends/mysql/fleet/dataset.h"
#include "backends/mysql/fleet/fleet.h"
#include "kvstore_api/types.h"

namespace kvstore::mysql {

/// Returns the approximate bytes and entries of a dataset of any shape, on all open shards together.
absl::StatusOr<DatasetStats> MeasureDataset(Fleet& fleet, const DatasetSpec& spec);

/// Removes the expired and the surplus cells of a dataset of rows, as a compaction does with files. Hosts are
/// purged in parallel, the shards of a host one after another, in small transactions and at the rate that
/// MySqlOptions::purge_cells_per_s allows a host. No read changes its answer: surplus cells are deleted only
/// while the newer cells that make them surplus are locked. A purge that was stopped, or failed on a host,
/// may be started again.
///
/// progress  bytes done, and in all, about; false stops the purge with CANCELLED. May be null.
absl::StatusOr<ReclaimResult> Purge(Fleet& fleet, const Dataset& dataset, const DatasetSpec& spec,
                                    const Progress& progress);

}  // namespace kvstore::mysql
