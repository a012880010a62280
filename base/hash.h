#pragma once

#include <cstdint>
#include <string_view>

namespace kvstore {

/// FNV-1a with 64 bits, whose high half is folded into the low one. Its values are the same in every build,
/// as they must be: the clock's slots are stored by them.
inline uint64_t Fnv1a(std::string_view bytes, uint64_t seed = 0xCBF29CE484222325) {
  uint64_t hash = seed;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  // Callers take the low bits, for slots and stripes.
  return hash ^ hash >> 32;
}

}  // namespace kvstore
