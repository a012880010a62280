#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "reports/chunk_types.h"
#include "reports/point_block.h"

namespace kvstore::reports {

/// The directory of a block of points: what occurs in it.
ChunkDirectory Survey(const PointBlock& points);

std::string EncodeDirectory(const ChunkDirectory& directory);
/// DATA_LOSS for bytes that no EncodeDirectory gave, and beyond the limits of a chunk.
absl::StatusOr<ChunkDirectory> DecodeDirectory(std::string_view bytes);

}  // namespace kvstore::reports
