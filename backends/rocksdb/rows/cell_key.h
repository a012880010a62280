#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backend_api/unit_key.h"
#include "base/big_endian.h"

/// The stored form of a cell's name. See docs/key-format.md; golden tests pin it.
///
///   key   = enc(row) enc(column) be64(~timestamp)
///
/// enc is that of unit_key.h, so keys sort by row, then column, then newest first under the plain bytewise
/// comparator.
namespace kvstore::rocks {

inline constexpr size_t kTimestampBytes = 8;
/// Appends be64(~timestamp).
void AppendTimestamp(std::string& out, uint64_t timestamp);

/// The timestamp of a cell, from its key, which must have at least 8 bytes.
inline uint64_t TimestampOf(std::string_view key) {
  return ~ReadBigEndian<uint64_t>(key.substr(key.size() - kTimestampBytes));
}

/// The parts of a key, not copied: row and column are still encoded, with their end marks.
struct CellKey {
  std::string_view row;
  std::string_view column;
  uint64_t timestamp = 0;
};

/// Splits the key of a cell; nullopt if `key` is not one.
std::optional<CellKey> ParseCellKey(std::string_view key);

}  // namespace kvstore::rocks
