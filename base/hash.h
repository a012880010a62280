#pragma once

#include <cstdint>
#include <string_view>

namespace kvstore {

/// FNV-1a, 64 bit. Chosen because its values are the same in every build: slots of clocks are stored by it.
inline uint64_t Fnv1a(std::string_view bytes, uint64_t seed = 0xCBF29CE484222325) {
  uint64_t hash = seed;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  // The low bits choose slots and stripes: let the high ones take part.
  return hash ^ hash >> 32;
}

}  // namespace kvstore
