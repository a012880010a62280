#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine.h"
#include "kvstore_api/types.h"

namespace kvstore::rocks {

/// Splits the rows of a family into about `wanted` ranges of about equal size, cut where its files begin.
/// What is only in memory cannot be split: a small dataset is one partition.
absl::StatusOr<std::vector<Partition>> PartitionRows(Engine& engine, const Family& family, size_t wanted);

/// Splits a family of rows into at most `wanted` ranges: rows where each but the first begins, encoded.
/// Guessed from the first and the last key, as if keys were spread evenly between them; works on what is in
/// memory, too.
absl::StatusOr<std::vector<std::string>> SplitRows(Engine& engine, const Family& family, size_t wanted);

}  // namespace kvstore::rocks
