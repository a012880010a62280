#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"

namespace kvstore {

/// For datasets whose tables are made on each shard when a call needs them first: on which shards they were
/// made. It is kept apart from the shards, so that one that has lost a table can be told from one that never
/// had it. A dataset without a record had all its tables from the beginning.
///
/// Records are kept under the incarnation and the engine (DatasetSpec::engine): another dataset of the name
/// does not have them, nor does the other side of a migration to another engine of the same servers. All
/// processes of the fleet see the same. Thread-safe.
///
/// Errors of all calls: UNAVAILABLE if the records cannot be reached; the outcome of a change is unknown
/// then.
class TableRecords {
 public:
  virtual ~TableRecords() = default;

  /// Begins the record of a dataset, which has no table yet. OK too if there is one.
  [[nodiscard]] virtual absl::Status Begin(const DatasetSpec& spec) = 0;
  /// Whether the table was made on a shard; nullopt if the dataset has no record.
  [[nodiscard]] virtual absl::StatusOr<std::optional<bool>> Find(const DatasetSpec& spec, uint32_t shard) = 0;

  /// When a shard was noted.
  enum class Noted : uint8_t { kNow, kBefore };
  /// Notes that the table was made on a shard. NOT_FOUND if the dataset has no record.
  [[nodiscard]] virtual absl::StatusOr<Noted> Add(const DatasetSpec& spec, uint32_t shard) = 0;
  /// Ends the record: the dataset has all its tables, or is dropped. OK too if there is none.
  [[nodiscard]] virtual absl::Status End(const DatasetSpec& spec) = 0;
};

}  // namespace kvstore
