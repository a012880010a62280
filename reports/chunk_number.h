#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reports/chunk_types.h"

/// The numbers of chunks: 6 bytes of ms since 1970 and 2 of a counter, which together grow in a process as
/// long as its clock is not set back by much, and 8 random bytes, so that no two processes give the same
/// number.
namespace kvstore::reports {

inline constexpr size_t kChunkNumberBytes = 16;
/// How many bytes of a number, from its first one on, hold its time.
inline constexpr size_t kChunkTimeBytes = 6;

/// A new number, whose time is at least `least_ms`; that does not move the times of later numbers.
/// Thread-safe.
std::string NewChunkNumber(uint64_t least_ms = 0);
/// The least number with this time, or with the last one that a number has room for: those before it sort
/// below.
std::string LeastChunkNumber(uint64_t ms);

ChunkName NameOfPart(std::string_view number, uint16_t part);
/// The time in the name of a chunk.
uint64_t TimeOfName(const ChunkName& name);

}  // namespace kvstore::reports
