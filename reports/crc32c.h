#pragma once

#include <cstdint>
#include <string_view>

namespace kvstore::reports {

/// CRC-32C (Castagnoli) of some bytes, in hardware where the processor has it. `before` is the checksum of
/// what stands in front of them, so that pieces can be added up.
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);

}  // namespace kvstore::reports
