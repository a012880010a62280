#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Numbers of 1 to 10 bytes, 7 bits in each, the lowest first; the highest bit of a byte says that another
/// follows. Each number has one form.
namespace kvstore {

inline void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

/// Removes a number from the front of `in`. Returns false if there is none, or in another form than
/// AppendVarint's; `in` has lost some bytes then.
inline bool ConsumeVarint(std::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 70 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    if (shift == 63 && byte > 1) return false;
    value |= uint64_t{byte & 0x7Fu} << shift;
    // A last byte of zero would be another form.
    if (byte < 0x80) return byte != 0 || shift == 0;
  }
  return false;
}

}  // namespace kvstore
