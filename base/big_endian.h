#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

/// Fixed-width unsigned numbers in big-endian form, which sort as bytes in the order of their values.
namespace kvstore {

namespace internal {

/// Native byte order to big-endian, or back.
template <std::unsigned_integral T>
constexpr T SwapToBig(T value) {
  if constexpr (sizeof(T) == 1) return value;
  if constexpr (std::endian::native == std::endian::big) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

}  // namespace internal

/// Appends the sizeof(T) bytes of `value`.
template <std::unsigned_integral T>
void AppendBigEndian(std::string& out, T value) {
  const T big = internal::SwapToBig(value);
  out.append(reinterpret_cast<const char*>(&big), sizeof(T));
}

/// Reads a number from the first sizeof(T) bytes of `bytes`, which must have as many; the rest is ignored.
template <std::unsigned_integral T>
T ReadBigEndian(std::string_view bytes) {
  T big;
  std::memcpy(&big, bytes.data(), sizeof(T));
  return internal::SwapToBig(big);
}

}  // namespace kvstore
