#include "reports/crc32c.h"

#include <isa-l/crc.h>

namespace kvstore::reports {

uint32_t Crc32c(std::string_view bytes, uint32_t before) {
  uint32_t crc = ~before;
  // The library takes an int as the length, and bytes that it does not change as if it did.
  constexpr size_t kPiece = size_t{1} << 30;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPiece);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(piece.data()));
    crc = crc32_iscsi(data, static_cast<int>(piece.size()), crc);
    bytes.remove_prefix(piece.size());
  }
  return ~crc;
}

}  // namespace kvstore::reports
