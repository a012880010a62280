#pragma once

#include "absl/status/statusor.h"
#include "backends/mysql/dataset.h"
#include "backends/mysql/fleet.h"
#include "kvstore_api/types.h"

namespace kvstore::mysql {

/// Bytes and entries of a dataset on all open shards, about.
absl::StatusOr<DatasetStats> MeasureDataset(Fleet& fleet, const DatasetSpec& spec);

/// Removes the expired and the surplus cells of a dataset of rows: what a compaction is to files. Shards of
/// one host one after another, hosts in parallel, each in small transactions and at most so fast as
/// MySqlOptions::purge_cells_per_s allows. No read changes its answer: surplus cells go only while the newer
/// ones that make them so are locked. Stopped (CANCELLED), or failed on one host, it may be started again.
absl::StatusOr<ReclaimResult> Purge(Fleet& fleet, const Dataset& dataset, const DatasetSpec& spec,
                                    const Progress& progress);

}  // namespace kvstore::mysql
