#pragma once

#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace kvstore::reports {

/// A hash whose every bit depends on every bit of the bytes: FNV-1a, and the finaliser of MurmurHash3.
/// Without the latter the lowest bits of FNV-1a follow those of the bytes, and neighbouring IDs share few
/// salts. Salts and sketches are stored by it: never change it.
inline uint64_t StableHash(std::string_view bytes) {
  uint64_t hash = Fnv1a(bytes);
  hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCD;
  hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53;
  return hash ^ hash >> 33;
}

}  // namespace kvstore::reports
