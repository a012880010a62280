#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "reports/metadata.h"

/// Which batches of a report were written under an ID, so that each of them counts once. A row of the report
/// has a column for each batch, whose name is the ID; its value is stored as
///
///   counter u16 | random u64 | hash of the points u64      18 bytes, big endian
///
/// Counter and random bytes are the end of the number that the batch's chunks have. Its time is the timestamp
/// that the store gave to this cell: no clock of a loader takes part in it. The timestamps of a row never go
/// back, so they are also the clock by which a batch is forgotten.
namespace kvstore::reports {

/// For how long a batch is known: 30 days. A batch is forgotten when the report has another one that the
/// store took later by more than this.
inline constexpr uint64_t kBatchMemoryMs = uint64_t{30} * 86'400'000;

/// Returns the number of a batch's chunks, which is the same for each attempt to write it.
///
/// report  the report's ID.
/// batch   the ID of the batch.
/// hash    of its points, and of how they are written.
///
/// INVALID_ARGUMENT for an ID that is no name; FAILED_PRECONDITION, and nothing has changed, if the batch was
/// written with another hash.
absl::StatusOr<std::string> NumberOfBatch(const Metadata& metadata, uint32_t report, std::string_view batch,
                                          uint64_t hash);

/// Forgets the batches that are older than kBatchMemoryMs. Returns the timestamp (in ms) since which the
/// batches are known.
absl::StatusOr<uint64_t> ForgetBatches(const Metadata& metadata, uint32_t report);

}  // namespace kvstore::reports
