#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "backend_api/mapping_store.h"
#include "backend_api/row_store.h"

/// Markers: positions as opaque tokens. A token is the base64url text of a format byte, a kind byte, the
/// position, and a CRC-64 over all of that and over what the token belongs to (the dataset's incarnation; the
/// row, or the ID and order). So a token of another read, or a changed one, is detected, although the token
/// itself stays short. This guards against mistakes, not against forgery, which would gain nothing: a
/// position only says where to continue.
namespace kvstore {

std::string SealRowMarker(uint64_t incarnation, std::string_view row, const RowPosition& position);
/// Includes ScanPosition::order unless it is empty; tokens of earlier versions have none.
std::string SealScanMarker(uint64_t incarnation, const ScanPosition& position);
std::string SealMappingMarker(uint64_t incarnation, uint64_t from, bool descending, const MappingEntry& last);
/// Markers of scans of objects and mappings. They name no backend, because all backends have the same order,
/// which the kind of the token stands for: that of IDs, and that of (from, to).
std::string SealObjectScanMarker(uint64_t incarnation, uint64_t next);
std::string SealMappingScanMarker(uint64_t incarnation, const MappingPosition& next);

/// The token of a change (KVStore::ReadChanges): a backend's position, as it is.
std::string SealChangesToken(uint64_t incarnation, std::string_view position);

/// INVALID_ARGUMENT for a token that was not sealed for the same arguments, or was changed since.
absl::StatusOr<RowPosition> OpenRowMarker(uint64_t incarnation, std::string_view row,
                                          std::string_view marker);
absl::StatusOr<ScanPosition> OpenScanMarker(uint64_t incarnation, std::string_view marker);
absl::StatusOr<MappingEntry> OpenMappingMarker(uint64_t incarnation, uint64_t from, bool descending,
                                               std::string_view marker);
absl::StatusOr<uint64_t> OpenObjectScanMarker(uint64_t incarnation, std::string_view marker);
absl::StatusOr<MappingPosition> OpenMappingScanMarker(uint64_t incarnation, std::string_view marker);
absl::StatusOr<std::string> OpenChangesToken(uint64_t incarnation, std::string_view token);

}  // namespace kvstore
