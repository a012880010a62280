#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine/engine.h"
#include "kvstore_api/types.h"

namespace kvstore::rocks {

/// Splits the rows of a family into about `wanted` ranges of similar size, at the rows where its files begin.
/// Rows that are only in memory are not split: a small dataset is one partition.
absl::StatusOr<std::vector<Partition>> PartitionRows(Engine& engine, const Family& family, size_t wanted);

/// Splits the rows of a family into at most `wanted` ranges, and returns the encoded rows at which all but
/// the first begin. It interpolates between the first and the last key, as if keys were spread evenly, so it
/// also splits rows that are only in memory.
absl::StatusOr<std::vector<std::string>> SplitRows(Engine& engine, const Family& family, size_t wanted);

}  // namespace kvstore::rocks
