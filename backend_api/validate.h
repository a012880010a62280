#pragma once

#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "kvstore_api/options.h"

/// Checks of arguments against the limits of the data model, which the router makes once for all backends.
/// Each returns INVALID_ARGUMENT with the field, the problem and the limit.
namespace kvstore {

absl::Status ValidateRowKey(std::string_view row);
absl::Status ValidateRead(std::string_view row, const ReadOptions& options);
/// Also checks that no (column, timestamp) is given twice; cells without a timestamp count as having the same
/// one.
absl::Status ValidatePut(std::string_view row, std::span<const CellWrite> cells, const WriteOptions& options);
absl::Status ValidateDelete(std::string_view row, const DeleteOptions& options);
absl::Status ValidateScan(const RowRange& range, const ScanOptions& options);
absl::Status ValidateBatch(size_t size);
/// field  the name of the ID in the message.
absl::Status ValidateId(std::string_view field, uint64_t id);
absl::Status ValidateListing(const MappingListOptions& options);
absl::Status ValidateObjectScan(const IdRange& range, const ObjectScanOptions& options);
absl::Status ValidateMappingScan(const IdRange& range, const MappingScanOptions& options);

}  // namespace kvstore
