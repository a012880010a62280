#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvstore {

/// Returns the milliseconds of a duration as people write it: whole numbers with the units w, d, h, m, s and
/// ms, the larger ones first: "30d", "1h30m", "500ms". INVALID_ARGUMENT, without a text for people, if it is
/// none; OUT_OF_RANGE if it takes more than 64 bits.
absl::StatusOr<uint64_t> ParseUnits(std::string_view text);

}  // namespace kvstore
