#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

/// Fixed-width big-endian numbers, whose byte order is their numeric order.
namespace kvstore {

template <std::unsigned_integral T>
void AppendBigEndian(std::string& out, T value) {
  char bytes[sizeof(T)];
  for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<char>(value >> (8 * (sizeof(T) - 1 - i)));
  out.append(bytes, sizeof(T));
}

/// `bytes` must have at least sizeof(T) bytes; the rest is not looked at.
template <std::unsigned_integral T>
T ReadBigEndian(std::string_view bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value << 8 | static_cast<unsigned char>(bytes[i]));
  return value;
}

}  // namespace kvstore
