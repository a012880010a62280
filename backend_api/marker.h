#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kvstore_api/mapping_store.h"
#include "kvstore_api/row_store.h"

/// Markers: positions as opaque tokens. A token is base64url text of: format byte, kind byte, the position,
/// and a CRC-64 over all of that and over what the token belongs to (the dataset's incarnation; the row, or
/// the ID and order). So a token from elsewhere, or a changed one, is found out, and the token itself stays
/// short. It guards against mistakes and not against forgery, which would gain nothing: a position only says
/// where to read on.
namespace kvstore {

std::string SealRowMarker(uint64_t incarnation, std::string_view row, const RowPosition& position);
/// With ScanPosition::order, if it has one; those of before there was such a thing have none.
std::string SealScanMarker(uint64_t incarnation, const ScanPosition& position);
std::string SealMappingMarker(uint64_t incarnation, uint64_t from, bool descending, const MappingEntry& last);

/// INVALID_ARGUMENT for a token that was not sealed for the same arguments, or was changed since.
absl::StatusOr<RowPosition> OpenRowMarker(uint64_t incarnation, std::string_view row,
                                          std::string_view marker);
absl::StatusOr<ScanPosition> OpenScanMarker(uint64_t incarnation, std::string_view marker);
absl::StatusOr<MappingEntry> OpenMappingMarker(uint64_t incarnation, uint64_t from, bool descending,
                                               std::string_view marker);

}  // namespace kvstore
